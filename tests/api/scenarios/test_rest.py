"""A thread has the state that its last run left; a run that never started, or was rolled back,
leaves none."""

import pytest
from plain import Thread, human, identity, texts

pytestmark = pytest.mark.beyond_peer("has no after_seconds that can be cancelled, and one line of checkpoints")


def cancel_before_it_begins(thread: Thread, assistant: str, action: str) -> None:
    body = {"assistant_id": assistant, "input": {}, "after_seconds": 3600}
    run = thread.ask("POST", thread.path("/runs"), json=body)
    thread.ask("POST", thread.path(f"/runs/{run['run_id']}/cancel"), params={"wait": 1, "action": action})


def same(before: dict, after: dict, *members: str) -> bool:
    return [before[each] for each in members] == [after[each] for each in members]


@pytest.mark.parametrize("action", ["interrupt", "rollback"])
def test_a_breakpoint_stays_one(http, action):
    thread = Thread(http)
    thread.run("nap", input={"ms": 1}, interrupt_before=["sleep"])
    before = thread.record()
    assert before["status"] == "interrupted"
    cancel_before_it_begins(thread, "nap", action)
    assert thread.record()["status"] == "interrupted"
    assert thread.state()["next"] == ["sleep"]
    assert thread.run("nap", input=None)["log"] == ["before", "slept", "after"]
    assert thread.record()["status"] == "idle"


@pytest.mark.parametrize("action", ["interrupt", "rollback"])
def test_a_failure_stays_one(http, action):
    thread = Thread(http)
    thread.run("failing", input={})
    before = thread.record()
    assert before["status"] == "error"
    cancel_before_it_begins(thread, "echo", action)
    after = thread.record()
    assert same(before, after, "status", "error", "values")


@pytest.mark.parametrize("action", ["interrupt", "rollback"])
def test_earlier_messages_are_still_shown(http, action):
    thread = Thread(http)
    thread.say("echo", "Hello")
    for _ in range(3):
        cancel_before_it_begins(thread, "nap", action)
    assert texts(thread.record()["values"]) == ["Hello", "You said: Hello"]
    assert texts(thread.state()["values"]) == ["Hello", "You said: Hello"]


def test_a_run_that_was_rolled_back_leaves_a_breakpoint(http):
    thread = Thread(http)
    thread.run("nap", input={"ms": 1}, interrupt_before=["sleep"])
    run = thread.ask("POST", thread.path("/runs"), json={"assistant_id": "nap", "input": {"ms": 600_000}})
    thread.ask("POST", thread.path(f"/runs/{run['run_id']}/cancel"), params={"wait": 1, "action": "rollback"})
    assert thread.record()["status"] == "interrupted"
    assert thread.state()["next"] == ["sleep"]


def test_queued_runs_continue_where_the_previous_one_ended(http):
    """Also when a client has selected a head: the first of them starts there."""
    thread = Thread(http)
    thread.run("nap", input={"ms": 1, "log": ["first"]})
    chosen = identity(thread.state())
    thread.run("nap", input={"ms": 1, "log": ["second"]})
    thread.ask("PATCH", thread.path("/branches"), json={"checkpoint_id": chosen})
    for word, ms in (("third", 1000), ("fourth", 1)):
        body = {"assistant_id": "nap", "input": {"ms": ms, "log": [word]}}
        run = thread.ask("POST", thread.path("/runs"), json=body)
    thread.ask("GET", thread.path(f"/runs/{run['run_id']}/join"))
    said = [word for word in thread.state()["values"]["log"] if word in ("first", "second", "third", "fourth")]
    assert said == ["first", "third", "fourth"]


def test_a_run_that_waits_follows_the_head_when_nothing_came_of_those_before(http):
    thread = Thread(http)
    thread.say("echo", "one")
    chosen = identity(thread.state())
    thread.say("echo", "two")
    thread.ask("PATCH", thread.path("/branches"), json={"checkpoint_id": chosen})
    cancel_before_it_begins(thread, "echo", "interrupt")
    assert texts(thread.record()["values"]) == ["one", "You said: one"]
    run = {"assistant_id": "echo", "input": human("three"), "after_seconds": 0.2}
    created = thread.ask("POST", thread.path("/runs"), json=run)
    thread.ask("GET", thread.path(f"/runs/{created['run_id']}/join"))
    assert texts(thread.state()["values"]) == ["one", "You said: one", "three", "You said: three"]


def test_a_question_goes_with_its_run(http):
    thread = Thread(http)
    thread.say("echo", "one")
    thread.say("approval", "two")
    assert thread.record()["status"] == "interrupted"
    [run, _] = thread.ask("GET", thread.path("/runs"))
    thread.ask("DELETE", thread.path(f"/runs/{run['run_id']}"), 204)
    record = thread.record()
    assert record["status"] == "idle"
    assert record["interrupts"] == {}
    assert thread.state()["tasks"] == []


def test_a_question_from_before_waits_again_when_a_run_is_deleted(http):
    thread = Thread(http)
    thread.say("approval", "one")
    before = thread.record()
    thread.say("approval", "two", interrupt_before=["ask"])
    [run, _] = thread.ask("GET", thread.path("/runs"))
    thread.ask("DELETE", thread.path(f"/runs/{run['run_id']}"), 204)
    after = thread.record()
    assert same(before, after, "status", "interrupts", "values")
    assert texts(thread.run("approval", command={"resume": "yes"})) == ["one", "Approved: yes"]
