"""Runs that are cancelled while pending: the first request after the response sees them cancelled."""

import pytest
from gate import Gate
from plain import Thread, human

pytestmark = pytest.mark.beyond_peer("answers before it has cancelled")

ROUNDS = 30


@pytest.fixture
def busy(http):
    """A thread whose first run blocks the agent `gated`."""
    thread = Thread(http)
    with Gate() as gate:
        run = thread.ask("POST", thread.path("/runs"), json=gate.body())["run_id"]
        yield thread
        thread.ask("POST", thread.path(f"/runs/{run}/cancel"), params={"wait": True})


def enqueue(thread: Thread) -> str:
    body = {"assistant_id": "gated", "input": human("later"), "multitask_strategy": "enqueue"}
    return thread.ask("POST", thread.path("/runs"), json=body)["run_id"]


def test_a_cancelled_run_is_not_pending_when_it_is_answered(busy):
    seen = []
    for _ in range(ROUNDS):
        run = enqueue(busy)
        assert busy.ask("POST", busy.path(f"/runs/{run}/cancel"), status=202) is None
        seen.append(busy.ask("GET", busy.path(f"/runs/{run}"))["status"])
    assert seen == ["interrupted"] * ROUNDS


def test_a_rolled_back_run_is_deleted_when_the_response_arrives(busy):
    for _ in range(ROUNDS):
        run = enqueue(busy)
        busy.ask("POST", busy.path(f"/runs/{run}/cancel"), status=202, params={"action": "rollback"})
        busy.ask("GET", busy.path(f"/runs/{run}"), status=404)


def test_runs_that_are_cancelled_together_are_not_pending_when_it_is_answered(busy):
    for _ in range(ROUNDS // 3):
        runs = [enqueue(busy) for _ in range(3)]
        busy.ask("POST", "/runs/cancel", status=204, json={"thread_id": busy.id, "run_ids": runs})
        assert {busy.ask("GET", busy.path(f"/runs/{run}"))["status"] for run in runs} == {"interrupted"}


def test_all_pending_runs_are_cancelled_when_it_is_answered(busy):
    for _ in range(ROUNDS // 3):
        runs = [enqueue(busy) for _ in range(3)]
        busy.ask("POST", "/runs/cancel", status=204, json={"status": "pending"})
        assert {busy.ask("GET", busy.path(f"/runs/{run}"))["status"] for run in runs} == {"interrupted"}
