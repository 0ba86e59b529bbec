"""A server seen from outside by the fault tests: metrics, files, and whether it is idle."""

from __future__ import annotations

import contextlib
import os
import time
from pathlib import Path

import httpx
from plain import human, texts

STATES = ("before", "slept", "after")  # the log of the graph `nap`


def metrics(server) -> dict[str, float]:
    return metrics_of(httpx.get(server.url + "/metrics", timeout=60).text)


def metrics_of(text: str) -> dict[str, float]:
    pairs = (line.rsplit(" ", 1) for line in text.splitlines() if line and not line.startswith("#"))
    return {name: float(value) for name, value in pairs}


def open_sockets(server) -> int:
    """Counts the sockets of the process; files of the store, which it opens on demand, do not
    count."""
    count = 0
    for file in Path(f"/proc/{server.process.pid}/fd").iterdir():
        with contextlib.suppress(FileNotFoundError):  # closed meanwhile
            count += os.readlink(file).startswith("socket:")
    return count


def eventually(check, seconds: float = 60):
    """Repeats the check until its result is true, and returns that; fails after `seconds`."""
    deadline = time.monotonic() + seconds
    while not (found := check()):
        if time.monotonic() > deadline:
            raise AssertionError(f"{check.__name__} did not become true in {seconds} s")
        time.sleep(0.05)
    return found


class Pace:
    """Detects whether the machine paused so long that something with a lifetime of `seconds` may
    have expired."""

    def __init__(self, seconds: float):
        self.seconds, self.widest, self.last = seconds, 0.0, time.monotonic()

    def __call__(self) -> None:
        now = time.monotonic()
        self.widest, self.last = max(self.widest, now - self.last), now

    def was_lost(self) -> bool:
        self()
        return self.widest > self.seconds / 2


def at_pace(seconds: float, attempt, tries: int = 5):
    """Calls attempt(pace), which calls pace() after each use; retries a failure if the machine
    paused."""
    for left in reversed(range(tries)):
        pace = Pace(seconds)
        try:
            return attempt(pace)
        except (AssertionError, TypeError):
            if not pace.was_lost() or left == 0:
                raise
    return None


def comes_to_rest(server, seconds: float = 120) -> None:
    """Waits until no run is running or pending and no thread is busy."""

    def looks_quiet() -> bool:
        now = metrics(server)
        return now["heddle_runs_running"] == now["heddle_runs_pending"] == now["heddle_store_calls"] == 0

    def is_quiet() -> bool:
        # At the first look, the server may not have read a request that was sent before it.
        return looks_quiet() and looks_quiet()

    eventually(is_quiet, seconds)
    answer = httpx.post(server.url + "/threads/search", json={"status": "busy", "limit": 1000}, timeout=60)
    assert answer.status_code == 200 and answer.json() == [], answer.text


def is_usable(http: httpx.Client, thread_id: str) -> None:
    """A run on the thread succeeds and its state is correct."""
    body = {"assistant_id": "echo", "input": human("still there?"), "if_not_exists": "create"}
    answer = http.post(f"/threads/{thread_id}/runs/wait", json=body)
    assert answer.status_code == 200, answer.text
    assert texts(answer.json())[-2:] == ["still there?", "You said: still there?"], answer.text
    state = http.get(f"/threads/{thread_id}/state").json()
    assert texts(state["values"]) == texts(answer.json()) and state["next"] == []
    # Only questions of other agents may be open.
    statuses = {}
    for agent in http.get(f"/threads/{thread_id}/agents").json():
        statuses.setdefault(agent["status"], set()).add(agent["graph_id"])
    assert "echo" in statuses["idle"] and "busy" not in statuses, statuses
    status = http.get(f"/threads/{thread_id}").json()["status"]
    assert status == ("interrupted" if "interrupted" in statuses else "idle"), (status, statuses)
