"""Delegates share lines with runs: they wait for a busy line, and never for themselves."""

from __future__ import annotations

import threading

import pytest
from bosses import AFTER_TOOLS, BOSS, MESSAGES, agent, call, contents, make
from programs import wait_for

ASKER = {
    "name": "asker",
    "state": MESSAGES,
    "nodes": {
        "ask": {"kind": "interrupt", "ask": [{"say": "sure?"}], "update": {"messages": [{"@ai": "{{answers[0]}}"}]}}
    },
    "edges": [["__start__", "ask"], ["ask", "__end__"]],
}
GATE = {"kind": "http", "url": "{{config.gate}}", "timeout_ms": 600000}
SLOW = {
    "name": "slow",
    "state": MESSAGES,
    "nodes": {"gate": {**GATE, "update": {"messages": [{"@ai": "{{response.body.text}}"}]}}},
    "edges": [["__start__", "gate"], ["gate", "__end__"]],
}
# Waits at a gate before it makes its calls.
MEMBER = agent([AFTER_TOOLS, {"content": "", "tool_calls": "{{config.calls}}"}])
MEMBER = {
    **MEMBER,
    "nodes": {**MEMBER["nodes"], "gate": GATE},
    "edges": [["__start__", "gate"], ["gate", "model"], *MEMBER["edges"][1:]],
}
GRAPHS = {"boss": BOSS, "slow": SLOW, "asker": ASKER, "member": MEMBER}


@pytest.fixture
def server(heddle):
    return heddle(graphs=GRAPHS)


class Door:
    """A server that responds when it is opened."""

    def __init__(self, scripted):
        self.opened = threading.Event()
        self.server = scripted(self.handle)

    def handle(self, peer, request) -> None:
        self.opened.wait(60)
        peer.answer(200, {"text": "through"})

    @property
    def url(self) -> str:
        return self.server.url

    @property
    def arrived(self) -> int:
        return len(self.server.requests)


def start(server, thread, assistant, **configurable) -> str:
    body = {"assistant_id": assistant, "input": {"messages": "go"}, "config": {"configurable": configurable}}
    return server.ask("POST", f"/threads/{thread}/runs", json=body)["run_id"]


def join(server, thread, run) -> dict:
    return server.ask("GET", f"/threads/{thread}/runs/{run}/join")


def record(server, thread) -> dict:
    return server.ask("GET", f"/threads/{thread}")


def calls(*names) -> dict:
    return {"calls": [call(name) for name in names], "assistants": list(names)}


def circle(server, scripted, *names):
    """Each calls the next, the last one the first, each in a run of its own."""
    thread, doors, runs = server.thread(), [Door(scripted) for _ in names], []
    agents = [
        make(server, "member", name, gate=door.url, **calls(names[(number + 1) % len(names)]))
        for number, (name, door) in enumerate(zip(names, doors))
    ]
    for one, door in zip(agents, doors):
        runs.append(start(server, thread, one))
        wait_for(lambda door=door: door.arrived, what="a run at its gate")
    for one, door in zip(agents, doors):
        door.opened.set()
        if one != agents[-1]:
            wait_for(
                lambda one=one: server.state(thread, assistant_id=one)["next"] == ["tools"], what="a call that waits"
            )
    return thread, agents, [join(server, thread, run) for run in runs]


@pytest.mark.parametrize("names", [("anna", "bert"), ("anna", "bert", "carl")], ids=["two", "three"])
def test_agents_that_call_each_other_do_not_block(server, scripted, names):
    thread, _, results = circle(server, scripted, *names)
    refused = [m for m in results[-1]["messages"] if m["type"] == "tool"]
    # In its own run, and each time the others called it.
    assert [m["status"] for m in refused] == len(names) * ["error"]
    assert "waits for this call" in refused[0]["content"]
    for values in results:
        assert contents(values)[-1].startswith("heard: ")
    assert record(server, thread)["status"] == "idle"


def test_a_delegate_does_not_wait_for_a_run_that_waits_for_its_line(server, scripted):
    """The circle goes through the delegate of one run and the root of another."""
    doors, thread = {name: Door(scripted) for name in ("bert", "carl")}, server.thread()
    bert = make(server, "member", "bert", gate=doors["bert"].url, **calls("carl"))
    carl = make(server, "member", "carl", gate=doors["carl"].url, **calls("bert"))
    first = start(server, thread, "boss", **calls("carl"))
    wait_for(lambda: doors["carl"].arrived, what="the delegate at its gate")
    second = start(server, thread, bert)
    wait_for(lambda: doors["bert"].arrived, what="the other run at its gate")
    doors["bert"].opened.set()
    wait_for(lambda: server.state(thread, assistant_id=bert)["next"] == ["tools"], what="a call that waits")
    doors["carl"].opened.set()
    assert contents(join(server, thread, first))[-1].startswith("heard: heard: ")
    assert contents(join(server, thread, second))[-1].startswith("heard: heard: ")
    refused = [m for m in server.state(thread, assistant_id=carl)["values"]["messages"] if m["type"] == "tool"]
    # The call of the first run's delegate, and that of the second run's own.
    assert [m["status"] for m in refused] == ["error", "error"]
    assert all("waits for this call" in m["content"] for m in refused)
    assert record(server, thread)["status"] == "idle"


def test_a_delegate_needs_no_place_among_the_running_runs(heddle, scripted):
    server, door = heddle(graphs=GRAPHS, options=["--max-runs", "1"]), Door(scripted)
    thread, other = server.thread(), server.thread()
    slow = make(server, "slow", "snail", gate=door.url)
    run = start(server, thread, "boss", **calls("snail"))
    wait_for(lambda: door.arrived, what="the delegate at the gate")
    later, elsewhere = start(server, thread, slow), start(server, other, slow)
    assert door.arrived == 1
    door.opened.set()
    assert contents(join(server, thread, run))[-1] == "heard: through"
    for where, each in ((thread, later), (other, elsewhere)):
        assert contents(join(server, where, each))[-1] == "through"


def test_two_calls_of_one_agent_take_turns(server, scripted):
    doors, thread = (Door(scripted), Door(scripted)), server.thread()
    slow = make(server, "slow", "snail", gate=doors[0].url)
    bosses = [make(server, "boss", f"boss {number}", **calls("snail")) for number in range(2)]
    runs = [start(server, thread, boss) for boss in bosses]
    wait_for(lambda: doors[0].arrived, what="the first delegate at the gate")
    for boss in bosses:
        wait_for(lambda: server.state(thread, assistant_id=boss)["next"] == ["tools"], what="both calls")
    assert doors[0].arrived == 1
    doors[0].opened.set()
    for run in runs:
        assert contents(join(server, thread, run))[-1] == "heard: through"
    assert contents(server.state(thread, assistant_id=slow)["values"]) == 2 * ["hello", "through"]


def test_a_delegate_waits_for_a_run_of_its_agent(server, scripted):
    door, thread = Door(scripted), server.thread()
    slow = make(server, "slow", "snail", gate=door.url)
    own = start(server, thread, slow)
    wait_for(lambda: door.arrived, what="the run at the gate")
    run = start(server, thread, "boss", **calls("snail"))
    wait_for(lambda: server.state(thread, assistant_id="boss")["next"] == ["tools"], what="the call")
    later = start(server, thread, slow)
    assert door.arrived == 1
    door.opened.set()
    join(server, thread, own)
    assert contents(join(server, thread, run))[-1] == "heard: through"
    join(server, thread, later)
    # The delegate precedes the queued run, since a running run waits for it.
    assert contents(server.state(thread, assistant_id=slow)["values"], "human") == ["go", "hello", "go"]


def test_a_cancelled_call_no_longer_waits(server, scripted):
    door, thread = Door(scripted), server.thread()
    slow = make(server, "slow", "snail", gate=door.url)
    own = start(server, thread, slow)
    wait_for(lambda: door.arrived, what="the run at the gate")
    run = start(server, thread, "boss", **calls("snail"))
    wait_for(lambda: server.state(thread, assistant_id="boss")["next"] == ["tools"], what="the call")
    server.ask("POST", f"/threads/{thread}/runs/{run}/cancel", params={"wait": True})
    door.opened.set()
    join(server, thread, own)
    assert contents(server.state(thread, assistant_id=slow)["values"]) == ["go", "through"]


def test_the_line_of_a_delegate_is_busy(server, scripted):
    door, thread = Door(scripted), server.thread()
    slow = make(server, "slow", "snail", gate=door.url)
    run = start(server, thread, "boss", **calls("snail"))
    wait_for(lambda: door.arrived, what="the delegate at the gate")
    update = {"assistant_id": slow, "values": {"messages": "by hand"}}
    server.ask("POST", f"/threads/{thread}/state", json=update, status=409)
    body = {"assistant_id": slow, "input": {"messages": "own"}}
    server.ask("POST", f"/threads/{thread}/runs", json={**body, "multitask_strategy": "reject"}, status=409)
    own = server.ask("POST", f"/threads/{thread}/runs", json={**body, "multitask_strategy": "interrupt"})["run_id"]
    assert door.arrived == 1
    door.opened.set()
    assert contents(join(server, thread, run))[-1] == "heard: through"
    join(server, thread, own)
    assert contents(server.state(thread, assistant_id=slow)["values"]) == ["hello", "through", "own", "through"]
    server.ask("POST", f"/threads/{thread}/state", json=update)


def test_a_call_replaces_an_open_question(server):
    thread, clerk = server.thread(), make(server, "asker", "clerk")
    server.wait(clerk, {"messages": "directly"}, thread=thread)
    assert record(server, thread)["status"] == "interrupted"
    server.wait("boss", {"messages": "go"}, thread=thread, configurable=calls("clerk"))
    # The question of the delegate belongs to its caller; the earlier one is gone.
    assert len(record(server, thread)["interrupts"]) == 1
    values = server.wait("boss", thread=thread, command={"resume": "yes"}, configurable={"assistants": ["clerk"]})
    assert contents(values)[-1] == "heard: yes"
    last = record(server, thread)
    assert (last["status"], last["interrupts"]) == ("idle", {})


def test_a_rolled_back_call_leaves_the_question_that_it_replaced(server, scripted):
    door, thread = Door(scripted), server.thread()
    clerk = make(server, "asker", "clerk")
    slow = make(server, "slow", "snail", gate=door.url)
    server.wait(clerk, {"messages": "directly"}, thread=thread)
    question = record(server, thread)["interrupts"]
    # Asks the clerk, then waits at the gate.
    run = start(server, thread, "boss", **calls("clerk", "snail"))
    wait_for(lambda: door.arrived, what="the delegate at the gate")
    wait_for(lambda: not record(server, thread)["interrupts"], what="the call of the clerk")
    path = f"/threads/{thread}/runs/{run}/cancel"
    server.ask("POST", path, params={"wait": True, "action": "rollback"})
    after = record(server, thread)
    assert (after["status"], after["interrupts"]) == ("interrupted", question)
    assert server.state(thread, assistant_id=slow)["values"] == {}
    values = server.wait(clerk, thread=thread, command={"resume": "yes"})
    assert contents(values)[-1] == "yes" and record(server, thread)["status"] == "idle"


def test_a_rolled_back_call_leaves_the_chosen_head(server, scripted):
    door, thread = Door(scripted), server.thread()
    door.opened.set()
    slow = make(server, "slow", "snail", gate=door.url)
    server.wait(slow, {"messages": "one"}, thread=thread)
    head = server.state(thread, assistant_id=slow)["checkpoint"]["checkpoint_id"]
    server.wait(slow, {"messages": "two"}, thread=thread)
    body = {"assistant_id": slow, "checkpoint_id": head}
    server.ask("PATCH", f"/threads/{thread}/branches", json=body)
    door.opened.clear()
    arrived = door.arrived
    run = start(server, thread, "boss", **calls("snail"))
    wait_for(lambda: door.arrived > arrived, what="the delegate at the gate")
    path = f"/threads/{thread}/runs/{run}/cancel"
    server.ask("POST", path, params={"wait": True, "action": "rollback"})
    assert server.state(thread, assistant_id=slow)["checkpoint"]["checkpoint_id"] == head
    door.opened.set()
    assert contents(server.wait(slow, {"messages": "three"}, thread=thread), "human") == ["one", "three"]


def test_a_deleted_run_leaves_the_question_that_its_call_replaced(server):
    thread, clerk = server.thread(), make(server, "asker", "clerk")
    server.wait(clerk, {"messages": "directly"}, thread=thread)
    question = record(server, thread)["interrupts"]
    server.wait("boss", {"messages": "go"}, thread=thread, configurable=calls("clerk"))
    server.wait("boss", thread=thread, command={"resume": "yes"}, configurable={"assistants": ["clerk"]})
    assert record(server, thread)["status"] == "idle"
    for run in server.ask("GET", f"/threads/{thread}/runs"):
        if run["assistant_id"] != clerk:
            server.ask("DELETE", f"/threads/{thread}/runs/{run['run_id']}", status=204)
    after = record(server, thread)
    assert (after["status"], after["interrupts"]) == ("interrupted", question)
    values = server.wait(clerk, thread=thread, command={"resume": "no"})
    assert contents(values)[-1] == "no" and record(server, thread)["status"] == "idle"
