"""A client that joins a run at a bad moment gets all events, or is disconnected, but never gets an
incomplete stream that looks complete."""

from __future__ import annotations

import contextlib
import threading

import httpx
import pytest
from plain import Thread, events, human
from server import GRAPHS, Server

pytestmark = pytest.mark.beyond_peer("makes no such promise")

BATCH = 300
ROUNDS, JOINS = 6, 5
LARGE = " ".join(f"word{number:07}" for number in range(12_000))  # its events exceed --stream-memory


@pytest.fixture
def tight_server():
    with Server(graphs={"echo": GRAPHS / "echo.json"}, options=["--stream-memory", "1m"]) as running:
        yield running


@pytest.fixture
def http(tight_server):
    with httpx.Client(base_url=tight_server.url, timeout=120) as client:
        yield client


def ids_of_join(http: httpx.Client, path: str) -> list[int]:
    """Returns the ids of the complete frames, also when the stream was cut off; none after a 503."""
    text = ""
    with (
        contextlib.suppress(httpx.TransportError),
        http.stream("GET", path, headers={"Last-Event-ID": "-1"}) as answer,
    ):
        assert answer.status_code in (200, 503)
        if answer.status_code == 200:
            for part in answer.iter_text():
                text += part
    whole = text[: text.rfind("\n\n") + 2] if "\n\n" in text else ""
    return [int(number) for _, _, number in events(whole)]


def test_a_run_that_is_stored_and_not_queued_yet_is_not_over(http):
    body = {"assistant_id": "echo", "input": human("hello"), "on_completion": "keep"}
    batch = threading.Thread(target=lambda: http.post("/runs/batch", json=[body] * BATCH))
    batch.start()
    found = []
    while not found:
        is_under_way = batch.is_alive()
        found = http.post("/threads/search", json={"limit": 1}).json()
        assert found or is_under_way
    path = f"/threads/{found[0]['thread_id']}/runs"
    run = http.get(path).json()[0]["run_id"]
    joined = events(http.get(f"{path}/{run}/stream").text)
    if joined:
        assert joined[-1][0] == "end"
    else:  # the run had ended before the join
        assert http.get(f"{path}/{run}").json()["status"] == "success"
    batch.join()


def test_events_that_memory_forgets_before_they_are_stored_are_not_left_out(http):
    for _ in range(ROUNDS):
        thread = Thread(http)
        messages = human(LARGE)["messages"] * 6
        body = {
            "assistant_id": "echo",
            "input": {"messages": messages},
            "stream_mode": ["values", "updates"],
            "stream_resumable": True,
        }
        run = thread.ask("POST", thread.path("/runs"), json=body)["run_id"]
        path = thread.path(f"/runs/{run}/stream?stream_mode=values&stream_mode=updates")
        for _ in range(JOINS):
            ids = ids_of_join(http, path)
            assert ids == list(range(1, len(ids) + 1))
        thread.ask("GET", thread.path(f"/runs/{run}/join"))
        whole = events(http.get(path, headers={"Last-Event-ID": "-1"}).text)
        assert [int(number) for _, _, number in whole] == list(range(1, len(whole) + 1))
        assert whole[-1][0] == "end"
