"""Runs in workers when the server itself ends: the next process continues them."""

from __future__ import annotations

from pathlib import Path

import pytest
from programs import wait_for
from project import lives

PROJECT = Path(__file__).parent / "projects" / "three"


def processes(pids: list[int]) -> list[int]:
    return [pid for pid in pids if lives(pid)]


@pytest.mark.parametrize("how", ["stop", "kill"])
def test_the_next_process_continues(project, how):
    server = project(folder=PROJECT)
    thread, gate = server.thread(), server.folder / "gate"
    body = {"assistant_id": "patient", "input": {"messages": [{"role": "user", "content": str(gate)}]}}
    run = server.ask("POST", f"/threads/{thread}/runs", json=body)["run_id"]
    wait_for(lambda: server.state(thread)["next"] == ["gate"], what="the run to be at work")
    workers = server.workers() + server.workers("js")
    assert len(workers) >= 2
    getattr(server, how)()
    wait_for(lambda: not processes(workers), what="the workers to be gone")
    server.restart()
    gate.touch()
    values = server.ask("GET", f"/threads/{thread}/runs/{run}/join")
    assert [message["content"] for message in values["messages"]][1:] == ["begun", "open"]
    assert server.ask("GET", f"/threads/{thread}/runs/{run}")["status"] == "success"
    steps = server.ask("GET", f"/threads/{thread}/history")
    assert [each["next"] for each in steps] == [[], ["gate"], ["begin"], ["__start__"]]
    assert steps[0]["metadata"]["run_attempt"] == 2
