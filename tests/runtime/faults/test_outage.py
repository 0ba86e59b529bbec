"""A database that is locked for a while: runs in workers wait for it and continue."""

from __future__ import annotations

import sqlite3
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from programs import wait_for

HERE = Path(__file__).resolve().parent


@pytest.mark.parametrize(("graph", "said"), [("steps", ["first", "left", "right", "end"]), ("typed", ["first", "end"])])
def test_a_run_in_a_worker_outlasts_a_locked_database(project, graph, said, tmp_path):
    server = project(folder=HERE / "graphs", options=["--store", f"sqlite:{tmp_path}/heddle.db?timeout=1"])
    (tmp_path / "first.waits").touch()
    thread = server.thread()
    with ThreadPoolExecutor(1) as pool:
        run = pool.submit(server.wait, graph, {"said": []}, thread, {"folder": str(tmp_path)})
        wait_for(lambda: list(tmp_path.glob("first.[0-9]*")), what="the node before the outage")
        database = sqlite3.connect(tmp_path / "heddle.db", timeout=60, isolation_level=None)
        database.execute("BEGIN IMMEDIATE")
        (tmp_path / "first.go").touch()
        wait_for(lambda: "the store is unavailable: runs wait" in server.log.read_text(), what="a run that waits")
        database.execute("ROLLBACK")
        database.close()
        assert run.result(timeout=120)["said"] == said
    assert len(list(tmp_path.glob("first.[0-9]*"))) == 1, "a node was executed twice"
