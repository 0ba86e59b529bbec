"""Workers that report their handlers wrongly: all requests are rejected."""

import json
import sys
from pathlib import Path

import httpx
import pytest

FAKE = Path(__file__).resolve().parent.parent / "lib" / "fake_worker.py"
ECHO = Path(__file__).resolve().parent / "projects" / "echo.json"
MANY = [f"resource{number}.create" for number in range(300)]


@pytest.mark.parametrize(
    ("handlers", "status"),
    [
        (["threads.create"], 403),
        ([*MANY, "threads.create"], 500),
        ([7, "threads.create"], 500),
        (None, 500),
        ("threads", 500),
    ],
)
def test_malformed_handler_lists_reject_requests(project, tmp_path, handlers, status):
    table = {
        "ready": {"graphs": {}, "auth": {"handlers": handlers}},
        "ops": {"authenticate": {"answer": {"user": {"identity": "ada"}}}, "authorize": {"answer": {"allow": False}}},
    }
    (tmp_path / "table.json").write_text(json.dumps(table))
    program = tmp_path / "python"
    program.write_text(
        f'#!/bin/sh\n[ "$1" = -m ] && exec {sys.executable} {FAKE} {tmp_path}/table.json\nexec {sys.executable} "$@"\n'
    )
    program.chmod(0o755)
    server = project(
        config={"graphs": {"echo": "./echo.json"}, "auth": {"path": "./auth.py:auth"}},
        files={"auth.py": "auth = None\n", "echo.json": ECHO.read_text()},
        options=["--runtime-python", str(program)],
    )
    assert httpx.post(f"{server.url}/threads", json={}, timeout=120).status_code == status
