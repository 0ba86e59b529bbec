"""Receipts: what a stopped run has left, however it was stopped."""

from __future__ import annotations

import json

import pytest
from programs import wait_for

SLOW = {
    "name": "slow",
    "state": {"messages": {"reducer": "messages"}},
    "nodes": {
        "reply": {
            "kind": "script",
            "replies": [{"content": "word " * 1000}],
            "stream": {"by": "word", "delay_ms": 500},
        }
    },
    "edges": [["__start__", "reply"], ["reply", "__end__"]],
}
FACTS = {"stopped_at_step", "tokens_streamed", "tools_in_flight"}


@pytest.fixture
def server(heddle):
    return heddle(graphs={"slow": SLOW})


def start(server, thread: str, **body) -> str:
    body = {"assistant_id": "slow", "input": {"messages": "go"}, **body}
    return server.ask("POST", f"/threads/{thread}/runs", json=body)["run_id"]


def record(server, thread: str, run: str) -> dict:
    return server.ask("GET", f"/threads/{thread}/runs/{run}")


def has_state(server, thread: str) -> bool:
    with server.client() as client:
        answer = client.get(f"/threads/{thread}/state")
    return answer.status_code == 200 and bool(answer.json()["values"].get("messages"))


def ended(server, thread: str, run: str) -> dict:
    def look():
        found = record(server, thread, run)
        return found if found["status"] not in ("pending", "running") else None

    return wait_for(look, what="the end of the run")


def last_event(server, thread: str, run: str) -> dict:
    with server.client() as client:
        answer = client.get(f"/threads/{thread}/runs/{run}/stream", headers={"Last-Event-ID": "-1"})
    lines = [line for line in answer.text.splitlines() if line.startswith("data: ")]
    return json.loads(lines[-1].removeprefix("data: "))


def test_a_waiting_cancel_returns_the_receipt(server):
    thread = server.thread()
    run = start(server, thread)
    wait_for(lambda: has_state(server, thread), what="the first checkpoint")
    receipt = server.ask("POST", f"/threads/{thread}/runs/{run}/cancel", params={"wait": "true"})
    assert receipt["run_id"] == run and receipt["status"] == "interrupted"
    assert receipt["checkpoint_id"] == server.state(thread)["checkpoint"]["checkpoint_id"]
    assert receipt.keys() >= FACTS and receipt["stopped_at_step"] == 1 and receipt["tools_in_flight"] == []
    kept = record(server, thread, run)["receipt"]
    assert kept == {key: receipt[key] for key in FACTS}
    assert last_event(server, thread, run)["receipt"] == kept
    # The run has ended; cancelling again returns the same facts.
    again = server.ask("POST", f"/threads/{thread}/runs/{run}/cancel", params={"wait": "true"})
    assert {key: again[key] for key in FACTS} == kept and again["status"] == "interrupted"


def test_of_one_that_had_not_begun(server):
    thread = server.thread()
    start(server, thread)
    run = start(server, thread, multitask_strategy="enqueue")
    receipt = server.ask("POST", f"/threads/{thread}/runs/{run}/cancel", params={"wait": "true"})
    assert receipt["stopped_at_step"] is None and receipt["tokens_streamed"] == 0 and receipt["tools_in_flight"] == []
    server.ask("POST", "/runs/cancel", json={"status": "all"}, status=204)


def test_of_one_that_makes_way(server):
    thread = server.thread()
    first = start(server, thread)
    wait_for(lambda: has_state(server, thread), what="the first checkpoint")
    second = start(server, thread, multitask_strategy="interrupt")
    assert ended(server, thread, first)["receipt"].keys() == FACTS
    server.ask("POST", f"/threads/{thread}/runs/{second}/cancel", params={"wait": "true"})


def test_a_rollback_has_one_too(server):
    thread = server.thread()
    run = start(server, thread)
    wait_for(lambda: has_state(server, thread), what="the first checkpoint")
    receipt = server.ask("POST", f"/threads/{thread}/runs/{run}/cancel", params={"wait": "true", "action": "rollback"})
    assert receipt["status"] == "deleted" and receipt["checkpoint_id"] is None and receipt.keys() >= FACTS


def test_of_one_that_took_too_long(heddle):
    server = heddle(graphs={"slow": SLOW}, options=["--run-timeout", "1"])
    thread = server.thread()
    run = start(server, thread)
    found = ended(server, thread, run)
    assert found["status"] == "timeout" and found["receipt"].keys() == FACTS


def test_a_run_that_ended_by_itself_has_no_receipt(heddle):
    server = heddle(graphs={"quick": {**SLOW, "nodes": {"reply": {"kind": "script", "replies": [{"content": "hi"}]}}}})
    thread = server.thread()
    server.wait("quick", {"messages": "go"}, thread=thread)
    run = server.ask("GET", f"/threads/{thread}/runs")[0]
    assert "receipt" not in run
    receipt = server.ask("POST", f"/threads/{thread}/runs/{run['run_id']}/cancel", params={"wait": "true"})
    assert receipt == {"run_id": run["run_id"], "status": "success"}
