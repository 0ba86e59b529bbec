"""Deleting a thread wins: a late write does not restore anything."""

from __future__ import annotations

import threading

import httpx
import pytest
from kept import dumped, stored
from programs import wait_for
from rows import human
from secured import Secured
from server import GRAPHS

MARK = "textOfTheDeletedThread"
ROUNDS = 12
# Writes a checkpoint for every step, and runs long enough to be deleted meanwhile.
COUNTER = {
    "name": "counter",
    "state": {"count": {"reducer": "add", "type": "number"}, "log": {"reducer": "add", "type": "list"}},
    "nodes": {
        "step": {"kind": "set", "emit": [{"at": "{{count}}"}], "update": {"count": 1, "log": [MARK + " {{count}}"]}},
        "rest": {"kind": "sleep", "ms": 2},
    },
    "edges": [
        ["__start__", "step"],
        ["step", "rest"],
        {"from": "rest", "routes": [{"when": {"@lt": ["{{count}}", 100]}, "to": "step"}, {"to": "__end__"}]},
    ],
}
SERVED = {"counter": COUNTER, "echo": GRAPHS / "echo.json"}
RUN = {"assistant_id": "counter", "input": {"count": 0}, "config": {"recursion_limit": 2000}, "stream_resumable": True}


def is_gone(http: httpx.Client, thread: str) -> None:
    for path in ("", "/state", "/history", "/runs", "/timeline", "/branches"):
        answer = http.get(f"/threads/{thread}{path}")
        assert answer.status_code == 404, f"{path}: {answer.status_code} {answer.text}"
    assert http.post("/threads/search", json={"ids": [thread]}).json() == []


def steps(http: httpx.Client, thread: str) -> int:
    answer = http.get(f"/threads/{thread}/state")
    return answer.json()["values"].get("count", 0) if answer.status_code == 200 else 0


def kept(server: Secured, store: str) -> bytes:
    return dumped(server.store) if store == "postgres" else stored(server)


def at_rest(server: Secured) -> None:
    def is_quiet() -> bool:
        now = server.metrics()
        return now["heddle_runs_running"] == now["heddle_runs_pending"] == now["heddle_store_calls"] == 0

    wait_for(is_quiet, what="a server at rest")


def test_active_runs(secured, store):
    """Deletes after each number of steps, while the run continues: it leaves nothing, also later."""
    server = secured(store=store, graphs=SERVED)
    gone = []
    with server.as_user("alice") as alice:
        witness = alice.post("/threads", json={"metadata": {"note": "stays"}}).json()["thread_id"]
        for number in range(ROUNDS):
            thread = alice.post("/threads", json={"metadata": {"note": MARK}}).json()["thread_id"]
            assert alice.post(f"/threads/{thread}/runs", json=RUN).status_code == 200
            if number:
                wait_for(lambda thread=thread, number=number: steps(alice, thread) >= number, what="a run at work")
            assert alice.delete(f"/threads/{thread}").status_code == 204
            is_gone(alice, thread)
            gone.append(thread)
        at_rest(server)
        for thread in gone:
            is_gone(alice, thread)
            # A deleted id can be used again, for an empty thread.
            assert alice.post("/threads", json={"thread_id": thread}).status_code == 200
            assert alice.get(f"/threads/{thread}/history").json() == []
            assert alice.delete(f"/threads/{thread}").status_code == 204
        assert alice.get(f"/threads/{witness}").status_code == 200
    server.stop()
    left = kept(server, store)
    assert witness.encode() in left, "what was looked for would be found"
    assert MARK.encode() not in left
    assert [thread for thread in gone if thread.encode() in left] == []


@pytest.mark.parametrize("writers", [4])
def test_many_writers(secured, store, writers):
    """Concurrent updates of a thread's state, runs and metadata, while it is deleted repeatedly."""
    server = secured(store=store, graphs=SERVED)
    thread, ending, wrong = "00000000-0000-4000-8000-00000000dead", threading.Event(), []

    def write(number: int) -> None:
        with server.as_user("alice") as http:
            while not ending.is_set():
                for answer in (
                    http.post(f"/threads/{thread}/state", json={"values": human(MARK), "assistant_id": "echo"}),
                    http.post(f"/threads/{thread}/runs/wait", json={"assistant_id": "echo", "input": human(MARK)}),
                    http.patch(f"/threads/{thread}", json={"metadata": {"note": MARK, "by": number}}),
                    http.post(f"/threads/{thread}/copy"),
                ):
                    if answer.status_code not in (200, 404, 409):
                        wrong.append(answer.text)
                        return

    threads = [threading.Thread(target=write, args=(number,)) for number in range(writers)]
    with server.as_user("alice") as alice:
        for each in threads:
            each.start()
        try:
            for _ in range(ROUNDS):
                assert alice.post("/threads", json={"thread_id": thread, "if_exists": "do_nothing"}).status_code == 200
                wait_for(lambda: len(alice.get(f"/threads/{thread}/history").json()) > 2, what="writers at work")
                assert alice.delete(f"/threads/{thread}").status_code == 204
                is_gone(alice, thread)
        finally:
            ending.set()
            for each in threads:
                each.join()
        assert not wrong, wrong
        is_gone(alice, thread)
        while copies := alice.post("/threads/search", json={"limit": 1000}).json():
            for copy in copies:
                assert alice.delete(f"/threads/{copy['thread_id']}").status_code == 204
    server.stop()
    left = kept(server, store)
    assert MARK.encode() not in left and thread.encode() not in left
