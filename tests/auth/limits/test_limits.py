"""Limits of a principal: requests above them get 429 with Retry-After, and succeed again later."""

from __future__ import annotations

import contextlib
import random

import httpx
import pytest
from programs import wait_for
from rows import human
from server import GRAPHS

SLEEPER = {
    "name": "sleeper", "state": {"done": {}},
    "nodes": {"sleep": {"kind": "sleep", "ms": 3600000}},
    "edges": [["__start__", "sleep"], ["sleep", "__end__"]],
}  # fmt: skip
SERVED = {"sleeper": SLEEPER, "echo": GRAPHS / "echo.json"}


def refused(answer: httpx.Response) -> None:
    assert answer.status_code == 429, answer.text
    assert int(answer.headers["retry-after"]) >= 1
    assert set(answer.json()) == {"detail"}


def start(http: httpx.Client, thread: str, assistant: str = "sleeper", **more) -> httpx.Response:
    return http.post(f"/threads/{thread}/runs", json={"assistant_id": assistant, "input": {}, **more})


def new_thread(http: httpx.Client) -> str:
    answer = http.post("/threads", json={})
    assert answer.status_code == 200, answer.text
    return answer.json()["thread_id"]


def cancel(http: httpx.Client, thread: str, run: str) -> None:
    answer = http.post(f"/threads/{thread}/runs/{run}/cancel", params={"wait": "1"})
    assert answer.status_code in (200, 202, 204), answer.text


@pytest.fixture
def limited(secured):
    """limited(store=…, runs=2): a server with these limits."""

    def create(store: str = "sqlite", **limits):
        return secured(store=store, graphs=SERVED, config={"limits": limits})

    return create


def test_requests(limited):
    server = limited(requests=20)
    with server.as_user("alice") as alice, server.as_user("bob") as bob:
        answers = []
        while len(answers) < 1000 and (not answers or answers[-1].status_code == 200):
            answers.append(alice.post("/threads/count", json={}))
        assert len(answers) > 20, "a minute's worth may come at once"
        refused(answers[-1])
        assert bob.post("/threads/count", json={}).status_code == 200
        assert httpx.get(server.url + "/ok", timeout=60).status_code == 200
        wait_for(lambda: alice.post("/threads/count", json={}).status_code == 200, what="room for a request")


def test_runs(limited, store):
    server = limited(store, runs=2)
    with server.as_user("alice") as alice, server.as_user("bob") as bob:
        threads = [new_thread(alice) for _ in range(3)]
        runs = [start(alice, thread).json()["run_id"] for thread in threads[:2]]
        refused(start(alice, threads[2]))
        for path in (
            "/runs",
            "/runs/wait",
            "/runs/stream",
            f"/threads/{threads[2]}/runs/stream",
            f"/threads/{threads[2]}/runs/wait",
        ):
            refused(alice.post(path, json={"assistant_id": "echo", "input": human("x")}))
        refused(alice.post("/runs/batch", json=[{"assistant_id": "echo", "input": human("x")}]))
        assert alice.get(f"/threads/{threads[2]}/runs").json() == [], "what was refused is not there"
        assert bob.post("/runs/wait", json={"assistant_id": "echo", "input": human("x")}).status_code == 200
        cancel(alice, threads[0], runs[0])
        again = wait_for(
            lambda: (answer := start(alice, threads[2])).status_code == 200 and answer.json()["run_id"],
            what="room for a run",
        )
        refused(start(alice, threads[0]))
        cancel(alice, threads[1], runs[1])
        cancel(alice, threads[2], again)
        body = {"assistant_id": "echo", "input": human("x")}
        for _ in range(5):  # ended runs are not counted
            wait_for(lambda: alice.post("/runs/wait", json=body).status_code == 200, what="room for a run")


def test_runs_that_a_restart_found_count(limited, store):
    server = limited(store, runs=1)
    with server.as_user("alice") as alice:
        first, second = new_thread(alice), new_thread(alice)
        run = start(alice, first).json()["run_id"]
        server.kill()
        server.restart()
        refused(start(alice, second))
        cancel(alice, first, run)
        wait_for(lambda: start(alice, second, "echo").status_code == 200, what="room for a run")


def test_streams(limited):
    server = limited(streams=2)
    with server.as_user("alice") as alice, server.as_user("bob") as bob, contextlib.ExitStack() as stack:
        thread, other = new_thread(alice), new_thread(bob)

        def listen(http: httpx.Client, thread: str) -> httpx.Response:
            return stack.enter_context(http.stream("GET", f"/threads/{thread}/stream"))

        held = [listen(alice, thread) for _ in range(2)]
        assert [answer.status_code for answer in held] == [200, 200]
        with alice.stream("GET", f"/threads/{thread}/stream") as answer:
            answer.read()
            refused(answer)
        body = {"assistant_id": "echo", "input": human("x")}
        refused(alice.post(f"/threads/{thread}/runs/stream", json=body))
        assert alice.post(f"/threads/{thread}/runs/wait", json=body).status_code == 200
        assert listen(bob, other).status_code == 200
        held[0].close()

        def is_let() -> bool:
            with alice.stream("GET", f"/threads/{thread}/stream") as answer:
                return answer.status_code == 200

        wait_for(is_let, what="room for a stream")


TEXT = random.Random(4711).randbytes(20_000).hex()  # incompressible


def fill_threads(http: httpx.Client) -> list[str]:
    return [
        f"/threads/{http.post('/threads', json={'metadata': {'n': f'{n}{TEXT}'}}).json()['thread_id']}"
        for n in range(8)
    ]


def fill_states(http: httpx.Client) -> list[str]:
    threads = [new_thread(http) for _ in range(8)]
    for n, thread in enumerate(threads):
        text = random.Random(n).randbytes(20_000).hex()
        assert (
            http.post(f"/threads/{thread}/runs/wait", json={"assistant_id": "echo", "input": human(text)}).status_code
            == 200
        )
    return [f"/threads/{thread}" for thread in threads]


def fill_assistants(http: httpx.Client) -> list[str]:
    made = http.post("/assistants", json={"graph_id": "echo", "description": TEXT}).json()["assistant_id"]
    for n in range(8):
        assert http.patch(f"/assistants/{made}", json={"metadata": {"n": f"{n}{TEXT}"}}).status_code == 200
    return [f"/assistants/{made}"]


def fill_crons(http: httpx.Client) -> list[str]:
    body = {"assistant_id": "echo", "schedule": "0 0 1 1 *", "input": human(TEXT)}
    return [f"/runs/crons/{http.post('/runs/crons', json=body).json()['cron_id']}" for _ in range(8)]


def fill_items(http: httpx.Client) -> list[dict]:
    items = [{"namespace": ["a"], "key": str(n)} for n in range(8)]
    for item in items:
        assert http.put("/store/items", json={**item, "value": {"text": TEXT}}).status_code == 204
    return items


def remove(http: httpx.Client, what: str | dict) -> None:
    if isinstance(what, dict):
        answer = http.request("DELETE", "/store/items", json=what)
    else:
        answer = http.delete(what)
    assert answer.status_code in (200, 204), answer.text


@pytest.mark.parametrize("fill", [fill_threads, fill_states, fill_assistants, fill_crons, fill_items])
def test_bytes(limited, store, fill):
    server = limited(store, bytes=200_000)
    with server.as_user("alice") as alice, server.as_user("bob") as bob:
        small, kept = new_thread(alice), new_thread(alice)
        made = fill(alice)
        # The stored size is measured periodically, and after each deletion.
        assert alice.delete(f"/threads/{small}").status_code == 204
        refused(alice.post("/threads", json={}))
        refused(alice.post(f"/threads/{kept}/runs/wait", json={"assistant_id": "echo", "input": human("x")}))
        refused(alice.put("/store/items", json={"namespace": ["b"], "key": "k", "value": {"text": "x"}}))
        refused(alice.post("/assistants", json={"graph_id": "echo"}))
        refused(alice.post("/runs/crons", json={"assistant_id": "echo", "schedule": "0 0 1 1 *"}))
        assert alice.get(f"/threads/{kept}/state").status_code == 200, "reading is allowed"
        assert bob.post("/threads", json={}).status_code == 200
        for each in made:
            remove(alice, each)
        wait_for(lambda: alice.post("/threads", json={}).status_code == 200, what="room for a thread")
