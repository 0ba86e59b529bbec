"""The agents of a thread: their own status, and their removal."""

import pytest
from gate import Gate
from plain import Thread, human, identity, texts, until

pytestmark = pytest.mark.beyond_peer("has no such endpoints")


@pytest.fixture
def thread(http):
    return Thread(http)


@pytest.fixture
def agents(http):
    """Creates assistants of graphs, and deletes them."""
    made = []

    def make(graph):
        made.append(http.post("/assistants", json={"graph_id": graph}).json()["assistant_id"])
        return made[-1]

    yield make
    for each in made:
        http.delete(f"/assistants/{each}")


def listed(thread):
    return thread.ask("GET", thread.path("/agents"))


def test_a_listed_agent_has_its_own_status(thread, agents):
    quiet = agents("echo")
    thread.run("approval", input=human("delete it?"))
    thread.say(quiet, "hi")
    asking, answering = listed(thread)
    assert (asking["status"], answering["status"]) == ("interrupted", "idle")
    assert asking["next"] and answering["next"] == []
    assert asking["interrupts"] == thread.record()["interrupts"] and answering["interrupts"] == {}
    runs = {run["assistant_id"]: run["run_id"] for run in thread.ask("GET", thread.path("/runs"))}
    assert [asking["run_id"], answering["run_id"]] == [runs[asking["assistant_id"]], runs[quiet]]


def test_an_agent_is_listed_from_its_first_run_on(thread):
    thread.say("echo", "hi")
    with Gate() as gate:
        run = thread.ask("POST", thread.path("/runs"), json=gate.body())["run_id"]
        until(lambda: gate.arrived)
        other, busy = thread.ask("GET", thread.path("/agents"))
        assert (other["status"], busy["status"], busy["run_id"]) == ("idle", "busy", run)
        assert busy["graph_id"] == "gated"
        gate.open()
        thread.ask("GET", thread.path(f"/runs/{run}/join"))
    assert [each["status"] for each in listed(thread)] == ["idle", "idle"]


# ---- DELETE /threads/{id}/agents/{assistant_id}


def remove(thread, agent, status=204):
    return thread.ask("DELETE", thread.path(f"/agents/{agent}"), status)


def test_a_removed_agent_leaves_nothing(thread, agents):
    gone, stays = agents("echo"), agents("echo")
    thread.say(stays, "one")
    thread.say(gone, "two")
    thread.ask("PATCH", thread.path("/branches"), json={"checkpoint_id": identity(thread.history()[1])})
    kept = thread.history(assistant_id=stays)
    remove(thread, gone)
    assert [each["assistant_id"] for each in listed(thread)] == [stays]
    assert thread.history(assistant_id=gone) == [] and thread.history(assistant_id=stays) == kept
    assert [run["assistant_id"] for run in thread.ask("GET", thread.path("/runs"))] == [stays]
    assert texts(thread.state()["values"])[0] == "one", "the head is on the remaining line"
    assert texts(thread.say(gone, "again")) == ["again", "You said: again"]
    assert texts(thread.say(stays, "two"))[::2] == ["one", "two"]


def test_a_removed_agent_takes_its_question_with_it(thread, agents):
    quiet = agents("echo")
    thread.say(quiet, "hi")
    thread.run("approval", input=human("delete it?"))
    assert thread.record()["status"] == "interrupted"
    remove(thread, "approval")
    record = thread.record()
    assert (record["status"], record["interrupts"]) == ("idle", {})
    assert thread.ask("POST", "/threads/search", json={"ids": [thread.id], "status": "interrupted"}) == []


def test_the_runs_of_a_removed_agent_are_stopped_and_others_are_not(thread, agents):
    other = agents("gated")
    with Gate() as gate, Gate() as second:
        run = thread.ask("POST", thread.path("/runs"), json=gate.body())["run_id"]
        queued = thread.ask("POST", thread.path("/runs"), json=gate.body())["run_id"]
        stays = thread.ask("POST", thread.path("/runs"), json=second.body(assistant_id=other))["run_id"]
        until(lambda: gate.arrived and second.arrived)
        remove(thread, "gated")
        for each in (run, queued):
            thread.ask("GET", thread.path(f"/runs/{each}"), 404)
        assert thread.record()["status"] == "busy"
        second.open()
        thread.ask("GET", thread.path(f"/runs/{stays}/join"))
    assert [each["assistant_id"] for each in listed(thread)] == [other]
    assert thread.record()["status"] == "idle"


def test_the_last_agent_can_be_removed(thread):
    thread.say("echo", "hi")
    remove(thread, "echo")
    assert listed(thread) == [] and thread.record()["values"] in (None, {})
    assert texts(thread.say("echo", "again")) == ["again", "You said: again"]


def test_lines_under_other_names_are_removed_too(thread, agents):
    agent = agents("echo")
    thread.say(agent, "one")
    thread.say(agent, "two", config={"configurable": {"checkpoint_ns": "mine"}})
    remove(thread, agent)
    assert listed(thread) == []


def test_only_agents_of_the_thread_can_be_removed(thread, agents):
    thread.say("echo", "hi")
    remove(thread, agents("echo"), 404)
    remove(thread, "nothing", 404)
    thread.ask("DELETE", "/threads/00000000-0000-4000-8000-000000000000/agents/echo", 404)
    assert len(listed(thread)) == 1


def test_the_checkpoints_of_subgraphs_are_removed_too(thread):
    thread.run("nested", input={**human("hi"), "ask": True})
    remove(thread, "nested")
    assert thread.history() == [] and listed(thread) == []
