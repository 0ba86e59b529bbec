"""Two agents stream on one thread at the same time: one log, a stream of the thread, one of each run."""

import contextlib
import threading

import httpx
import pytest
from gate import Gate
from load import eventually
from plain import Thread, events

pytestmark = pytest.mark.beyond_peer("runs one run of a thread at a time")

FROM_START = {"Last-Event-ID": "-1"}


def whole(text: str) -> list[tuple]:
    """The complete frames of a stream that may go on."""
    return events(text[: text.rfind("\n\n") + 2]) if "\n\n" in text else []


class Reader:
    """Reads a stream in the background."""

    def __init__(self, http, path: str, **options):
        self.text, self.is_open = "", threading.Event()
        self.thread = threading.Thread(target=self.read, args=(http, path, options), daemon=True)
        self.thread.start()
        assert self.is_open.wait(30)

    def read(self, http, path: str, options: dict) -> None:
        with contextlib.suppress(httpx.TransportError), http.stream("GET", path, **options) as answer:
            self.is_open.set()
            for piece in answer.iter_text():  # that of a thread ends with the server
                self.text += piece

    def frames(self) -> list[tuple]:
        return whole(self.text)


def resumed(http, path: str, after: str, count: int) -> list[tuple]:
    """`count` frames of a thread's stream, which does not end by itself."""
    found, text = [], ""
    if count == 0:
        return found
    with http.stream("GET", path, headers={"Last-Event-ID": after}) as answer:
        for piece in answer.iter_text():
            text += piece
            found = whole(text)
            if len(found) >= count:
                break
    return found


def numbers(frames: list[tuple]) -> list[int]:
    return [int(frame[2]) for frame in frames]


def start_two(http, thread: Thread, gate: Gate) -> tuple[list[str], list[Reader]]:
    """Starts runs of two agents that wait at the gate, and joins them."""
    runs, readers = [], []
    for name in ("first", "second"):
        agent = http.post("/assistants", json={"graph_id": "gated", "name": name}).json()["assistant_id"]
        body = gate.body(stream_mode=["messages-tuple", "updates"], stream_resumable=True)
        runs.append(thread.ask("POST", thread.path("/runs"), json={**body, "assistant_id": agent})["run_id"])
    eventually(lambda: gate.arrived == 2)
    for run in runs:
        readers.append(Reader(http, thread.path(f"/runs/{run}/stream"), headers=FROM_START))
    return runs, readers


def check_streams(http, thread: Thread, runs: list[str], live: list[tuple]) -> list[list[tuple]]:
    """The stream of the thread has the events of both runs, each once and in order, from any event on."""
    path = thread.path("/stream")
    assert resumed(http, path, "-1", len(live)) == live
    for number in range(0, len(live) - 1, 5):
        assert resumed(http, path, live[number][2], len(live) - number - 1) == live[number + 1 :]
    parts = []
    for run in runs:
        join = thread.path(f"/runs/{run}/stream")
        part = events(http.get(join, headers=FROM_START).text)
        assert part[0][1]["run_id"] == run
        for number in (0, len(part) // 2, len(part) - 1):
            rest = http.get(join, headers={"Last-Event-ID": part[number][2]}).text
            assert events(rest) == part[number + 1 :]
        parts.append(part)
    assert sorted(parts[0] + parts[1], key=lambda frame: int(frame[2])) == live
    return parts


@pytest.fixture
def http(own_server):
    with httpx.Client(base_url=own_server.url, timeout=60) as client:
        yield client


def test_two_agents_stream_at_the_same_time(own_server, http):
    thread = Thread(http)
    with Gate() as gate:
        whole_thread = Reader(http, thread.path("/stream"))
        runs, readers = start_two(http, thread, gate)
        gate.open()
        for reader in readers:
            reader.thread.join(60)
    joined = [reader.frames() for reader in readers]
    eventually(lambda: len(whole_thread.frames()) >= len(joined[0]) + len(joined[1]))
    live = whole_thread.frames()

    assert numbers(live) == sorted(set(numbers(live)))
    assert check_streams(http, thread, runs, live) == joined
    # Both ran at once: each has events between the first and the last one of the other.
    first, second = (numbers(part) for part in joined)
    assert min(first[-1], second[-1]) > max(first[0], second[0]) + 5
    own_server.stop()
    own_server.restart()
    assert check_streams(http, thread, runs, live) == joined


def test_the_other_run_continues_when_a_reader_leaves(http):
    """on_disconnect=cancel stops the run of its reader only."""
    thread = Thread(http)
    with Gate() as gate:
        body = gate.body(on_disconnect="cancel", stream_mode="updates")
        with http.stream("POST", thread.path("/runs/stream"), json=body) as answer:
            leaving = answer.headers["content-location"].split("/")[-1]
            agent = http.post("/assistants", json={"graph_id": "gated", "name": "stays"}).json()["assistant_id"]
            staying = thread.ask("POST", thread.path("/runs"), json=gate.body(assistant_id=agent))["run_id"]
            eventually(lambda: gate.arrived == 2)
        eventually(lambda: thread.ask("GET", thread.path(f"/runs/{leaving}"))["status"] == "interrupted")
        assert thread.ask("GET", thread.path(f"/runs/{staying}"))["status"] == "running"
    http.get(thread.path(f"/runs/{staying}/join"))
    assert thread.ask("GET", thread.path(f"/runs/{staying}"))["status"] == "success"
