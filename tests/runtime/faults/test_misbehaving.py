"""Workers that hang, flood, leak, violate the protocol, or have another version."""

from __future__ import annotations

import os
import signal
from pathlib import Path

from programs import SANITIZERS, wait_for

HERE = Path(__file__).resolve().parent


def test_one_that_hangs(project, tmp_path):
    server = project(folder=HERE / "graphs", options=["--runtime-hang-timeout", "5"])
    ended = server.wait("stops", {"said": []}, configurable={"folder": str(tmp_path)})
    assert ended["said"] == ["went on"]
    assert len(list(tmp_path.glob("stop.*"))) == 2


def test_one_that_floods(project, tmp_path):
    """A hundred MB of events without a reader: the server does not keep them, and serves other
    requests."""
    # AddressSanitizer's quarantine of freed memory is not a leak.
    env = {"ASAN_OPTIONS": SANITIZERS["ASAN_OPTIONS"] + ":quarantine_size_mb=1"}
    server = project(folder=HERE / "graphs", env=env, options=["--runtime-workers", "2"])
    server.wait("steps", {"said": []}, configurable={"folder": str(tmp_path)})
    before = server.resident_kib()
    body = {
        "assistant_id": "chatty", "input": {"said": []}, "stream_mode": ["custom"],
        "config": {"configurable": {"folder": str(tmp_path), "count": 10_000, "size": 10_000}},
    }  # fmt: skip
    with server.client() as client, client.stream("POST", "/runs/stream", json=body) as answer:
        assert answer.status_code == 200
        wait_for(lambda: (tmp_path / "talk.1").exists(), what="the flood")
        for _ in range(5):
            assert server.wait("steps", {"said": []}, configurable={"folder": str(tmp_path)})["said"]
        assert server.resident_kib() - before < 80_000
    assert server.wait("steps", {"said": []}, configurable={"folder": str(tmp_path)})["said"]


def test_one_that_leaks(project, tmp_path):
    server = project(folder=HERE / "graphs", options=["--runtime-memory", "400m"])
    old = server.ready()
    for _ in range(3):
        assert server.wait("greedy", {"said": []}, configurable={"folder": str(tmp_path)})["said"] == ["ate"]
    wait_for(lambda: (now := server.workers()) and not set(now) & set(old), what="another worker")
    assert server.wait("steps", {"said": []}, configurable={"folder": str(tmp_path)})["said"]


def test_one_that_is_suspended_and_continued(project, tmp_path):
    """Shorter than the limit: the run only takes longer."""
    server = project(folder=HERE / "graphs", options=["--runtime-hang-timeout", "60"])
    [pid] = server.ready()
    (tmp_path / "first.waits").touch()
    thread = server.thread()
    body = {"assistant_id": "steps", "input": {"said": []}, "config": {"configurable": {"folder": str(tmp_path)}}}
    run = server.ask("POST", f"/threads/{thread}/runs", json=body)
    wait_for(lambda: (tmp_path / "first.1").exists(), what="the run")
    wait_for(lambda: server.state(thread)["next"] == ["first"], what="its checkpoint")
    os.kill(pid, signal.SIGSTOP)
    assert server.state(thread)["next"] == ["first"]
    (tmp_path / "first.go").touch()
    os.kill(pid, signal.SIGCONT)
    ended = server.ask("GET", f"/threads/{thread}/runs/{run['run_id']}/join")
    assert ended["said"] == ["first", "left", "right", "end"]
    assert server.workers() == [pid]
