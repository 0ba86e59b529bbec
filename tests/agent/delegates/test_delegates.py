"""Assistants as tools of other assistants: each has its own history in the same thread."""

from __future__ import annotations

import threading

import pytest
from bosses import BOSS, MESSAGES, call, contents, make
from programs import wait_for

# Repeats all messages that it has received.
PARROT = {
    "name": "parrot",
    "state": MESSAGES,
    "nodes": {
        "reply": {
            "kind": "script",
            "replies": [
                {
                    "content": {
                        "@concat": [
                            "{{config.voice}}: ",
                            {"@join": [{"@map": {"over": "{{messages}}", "as": "m", "value": "{{m.content}}"}}, " / "]},
                        ]
                    }
                }
            ],
            "stream": {"by": "word"},
        }
    },
    "edges": [["__start__", "reply"], ["reply", "__end__"]],
}
ASKER = {
    "name": "asker",
    "state": MESSAGES,
    "nodes": {
        "ask": {
            "kind": "interrupt",
            "ask": [{"say": "which one?"}, {"say": "sure?"}],
            "update": {"messages": [{"@ai": "{{answers[0]}}, {{answers[1]}}"}]},
        }
    },
    "edges": [["__start__", "ask"], ["ask", "__end__"]],
}
# Replies "begun", then sends a request to a slow server.
SLOW = {
    "name": "slow",
    "state": MESSAGES,
    "nodes": {
        "first": {"kind": "script", "replies": [{"content": "begun"}]},
        "gate": {"kind": "http", "url": "{{config.gate}}", "update": {"messages": [{"@ai": "{{response.body.text}}"}]}},
    },
    "edges": [["__start__", "first"], ["first", "gate"], ["gate", "__end__"]],
}
# Interrupts, sends a request to a slow server, then interrupts again.
CAREFUL = {
    "name": "careful",
    "state": MESSAGES,
    "nodes": {
        "ask": {"kind": "interrupt", "ask": [{"say": "may I?"}], "update": {"messages": [{"@ai": "{{answers[0]}}"}]}},
        "gate": {"kind": "http", "url": "{{config.gate}}", "update": {"messages": [{"@ai": "{{response.body.text}}"}]}},
        "again": {
            "kind": "interrupt",
            "ask": [{"say": "really?"}],
            "update": {"messages": [{"@ai": "{{answers[0]}}"}]},
        },
    },
    "edges": [["__start__", "ask"], ["ask", "gate"], ["gate", "again"], ["again", "__end__"]],
}
GRAPHS = {"boss": BOSS, "parrot": PARROT, "asker": ASKER, "slow": SLOW, "careful": CAREFUL}


def origins_of(server, thread, **params):
    return server.ask("GET", f"/threads/{thread}/messages", params=params)["messages"]


@pytest.fixture
def server(heddle):
    return heddle(graphs=GRAPHS)


@pytest.fixture
def parrots(server):
    return {name: make(server, "parrot", name, voice=name) for name in ("alpha", "beta")}


@pytest.fixture
def gate(scripted):
    """Does not respond to its first request until the client disconnects; responds to all others."""

    def handle(peer, request) -> None:
        if request.number == 0:
            peer.wait_closed()
            peer.close()
        else:
            peer.answer(200, {"text": "through the gate"})

    return scripted(handle)


def make_snail(server, gate) -> str:
    return make(server, "slow", "snail", gate=gate.url)


def say(server, thread: str, text: str, calls: list, boss: str = "boss", **body) -> dict:
    configurable = {"calls": calls, **body.pop("configurable", {})}
    configurable.setdefault("assistants", sorted({each["name"] for each in calls}))
    return server.wait(boss, {"messages": text}, thread=thread, configurable=configurable, **body)


def test_two_delegates_work_at_once_and_answer_by_id(server, parrots):
    thread = server.thread()
    values = say(server, thread, "ask both", [call("alpha", "to a"), call("beta", "to b")])
    answers = {
        m["tool_call_id"]: (m["name"], m["content"], m["status"]) for m in values["messages"] if m["type"] == "tool"
    }
    assert answers == {
        "call_alpha": ("alpha", "alpha: to a", "success"),
        "call_beta": ("beta", "beta: to b", "success"),
    }
    assert contents(values)[-1] == "heard: beta: to b"
    for name, text in (("alpha", "to a"), ("beta", "to b")):
        state = server.state(thread, assistant_id=parrots[name])
        assert contents(state["values"]) == [text, f"{name}: {text}"]
        assert state["checkpoint"]["checkpoint_ns"] == f"assistant:{parrots[name]}"
        origins = origins_of(server, thread, assistant_id=parrots[name])
        assert [(one["delegated"], one["fork_checkpoint_id"], one["alternatives"]) for one in origins] == [
            (True, None, [])
        ] * 2
        assert [one["sender"]["type"] for one in origins] == ["agent", "agent"]
        assert origins[0]["sender"]["id"] != parrots[name] and origins[1]["sender"]["id"] == parrots[name]
        assert state["next"] == []
    assert not any(one["delegated"] for one in origins_of(server, thread))
    agents = server.ask("GET", f"/threads/{thread}/agents")
    assert {one["assistant_id"] for one in agents if one["delegated"]} == set(parrots.values())
    assert len(agents) == 3


def test_each_remembers_its_own_line_only(server, parrots):
    thread = server.thread()
    say(server, thread, "one", [call("alpha", "a1"), call("beta", "b1")])
    values = say(server, thread, "two", [call("alpha", "a2")])
    assert contents(values, "tool")[-1] == "alpha: a1 / alpha: a1 / a2"
    assert contents(server.state(thread, assistant_id=parrots["beta"])["values"]) == ["b1", "beta: b1"]
    # The user can also talk to the delegate directly, in the same history.
    direct = server.wait(parrots["beta"], {"messages": "b2"}, thread=thread)
    assert contents(direct)[-1] == "beta: b1 / beta: b1 / b2"


def test_the_timeline_and_the_history_show_all(server, parrots):
    thread = server.thread()
    say(server, thread, "go", [call("alpha", "a1"), call("beta", "b1")])
    runs = server.ask("GET", f"/threads/{thread}/runs")
    timeline = server.ask("GET", f"/threads/{thread}/timeline")
    said = [(entry["assistant_id"], entry["message"]["content"]) for entry in timeline]
    assert {(parrots["alpha"], "a1"), (parrots["alpha"], "alpha: a1"), (parrots["beta"], "beta: b1")} <= set(said)
    assert [text for _, text in said][0] == "go" and said[-1][1] == "heard: beta: b1"
    assert {entry["run_id"] for entry in timeline} == {runs[0]["run_id"]}
    history = server.ask("POST", f"/threads/{thread}/history", json={"assistant_id": parrots["alpha"]})
    assert len(runs) == 1 and history
    for state in history:
        metadata = state["metadata"]
        assert metadata["run_id"] == runs[0]["run_id"] and metadata["assistant_id"] == parrots["alpha"]
        assert metadata["graph_id"] == "parrot" and metadata["tool_call_id"] == "call_alpha"
    # The thread itself shows the agent that the client called.
    assert contents(server.state(thread)["values"])[0] == "go"
    assert server.ask("GET", f"/threads/{thread}/branches", params={"assistant_id": parrots["alpha"]})


def test_a_delegate_continues_at_the_chosen_head(server, parrots):
    thread, alpha = server.thread(), parrots["alpha"]
    say(server, thread, "one", [call("alpha", "a1")])
    first = server.state(thread, assistant_id=alpha)["checkpoint"]["checkpoint_id"]
    say(server, thread, "two", [call("alpha", "a2")])
    server.ask(
        "PATCH", f"/threads/{thread}/branches", json={"checkpoint_id": first, "checkpoint_ns": f"assistant:{alpha}"}
    )
    values = say(server, thread, "three", [call("alpha", "a3")])
    assert contents(values, "tool")[-1] == "alpha: a1 / alpha: a1 / a3"
    # The chosen head applies once: now the delegate continues on its new branch.
    values = say(server, thread, "four", [call("alpha", "a4")])
    assert contents(values, "tool")[-1].endswith("a3 / alpha: a1 / alpha: a1 / a3 / a4")


def test_a_rollback_removes_the_results_of_delegates(server, parrots):
    thread = server.thread()
    say(server, thread, "go", [call("alpha", "a1")])
    run = server.ask("GET", f"/threads/{thread}/runs")[0]
    server.ask("DELETE", f"/threads/{thread}/runs/{run['run_id']}", status=204)
    assert server.state(thread, assistant_id=parrots["alpha"])["values"] == {}


def test_they_are_known_by_id_name_and_graph(server, parrots):
    thread = server.thread()
    values = say(
        server,
        thread,
        "go",
        [call("alpha", "a"), call("parrot", "p")],
        configurable={"assistants": [parrots["alpha"], "parrot"]},
    )
    assert contents(values, "tool")[0] == "alpha: a" and contents(values, "tool")[1].endswith(": p")


def test_an_unknown_delegate_is_reported(server, parrots):
    thread = server.thread()
    events = server.stream(
        "boss", {"messages": "go"}, thread=thread, stream_mode=["custom", "values"],
        configurable={"calls": [call("nobody"), call("alpha")], "assistants": ["nobody", "alpha"]},
    )  # fmt: skip
    problems = [data for event, data, _ in events if event == "custom"]
    assert problems and "nobody" in problems[0]["message"]
    last = [data for event, data, _ in events if event == "values"][-1]
    by_name = {m["tool_call_id"]: m for m in last["messages"] if m["type"] == "tool"}
    assert by_name["call_nobody"]["status"] == "error"
    assert by_name["call_alpha"]["content"] == "alpha: hello"


def test_two_calls_of_one_delegate_follow_each_other(server, parrots):
    thread = server.thread()
    values = say(server, thread, "go", [call("alpha", "first", "c1"), call("alpha", "second", "c2")])
    answers = {m["tool_call_id"]: m["content"] for m in values["messages"] if m["type"] == "tool"}
    assert answers in (
        {"c1": "alpha: first", "c2": "alpha: first / alpha: first / second"},
        {"c2": "alpha: second", "c1": "alpha: second / alpha: second / first"},
    )


def test_the_output_of_a_delegate_is_streamed(server, parrots):
    thread = server.thread()
    events = server.stream(
        "boss", {"messages": "go"}, thread=thread, stream_mode=["messages-tuple", "updates", "events"], stream_subgraphs=True,
        configurable={"calls": [call("alpha", "to a")], "assistants": ["alpha"]},
    )  # fmt: skip
    said, places = {}, set()
    for event, data, _ in events:
        if event.startswith("messages"):
            message, metadata = data
            if metadata["assistant_id"] == parrots["alpha"] and message["type"] == "AIMessageChunk":
                said[message["id"]] = said.get(message["id"], "") + message["content"]
                places.add(metadata["langgraph_checkpoint_ns"])
    state = server.state(thread, assistant_id=parrots["alpha"])["values"]["messages"]
    assert said == {state[-1]["id"]: "alpha: to a"}
    assert all(place.startswith("tools:") and "|reply:" in place for place in places)
    updates = [event for event, _, _ in events if event.startswith("updates|tools:")]
    assert updates, [event for event, _, _ in events]
    # There is one outermost graph, which starts and ends once.
    graphs = [
        data
        for event, data, _ in events
        if event.startswith("events") and data["event"] == "on_chain_end" and not data["parent_ids"]
    ]
    assert len(graphs) == 1


def test_a_question_of_a_delegate_is_the_agents(server):
    asker = make(server, "asker", "clerk")
    thread = server.thread()
    values = say(server, thread, "go", [call("clerk")])
    question = values["__interrupt__"][0]["value"]
    assert question["say"] == "which one?" and question["delegate"]["assistant_id"] == asker
    assert server.ask("GET", f"/threads/{thread}")["status"] == "interrupted"
    values = server.wait("boss", thread=thread, command={"resume": "that one"}, configurable={"assistants": ["clerk"]})
    assert values["__interrupt__"][0]["value"]["say"] == "sure?"
    values = server.wait("boss", thread=thread, command={"resume": "yes"}, configurable={"assistants": ["clerk"]})
    assert contents(values)[-1] == "heard: that one, yes"
    assert contents(server.state(thread, assistant_id=asker)["values"]) == ["hello", "that one, yes"]


def test_questions_survive_a_crash(server):
    asker = make(server, "asker", "clerk")
    thread = server.thread()
    configurable = {"assistants": ["clerk"]}
    say(server, thread, "go", [call("clerk")])
    server.kill()
    server.restart()
    values = server.wait("boss", thread=thread, command={"resume": "that one"}, configurable=configurable)
    assert values["__interrupt__"][0]["value"]["say"] == "sure?"
    server.kill()
    server.restart()
    values = server.wait("boss", thread=thread, command={"resume": "yes"}, configurable=configurable)
    assert contents(values)[-1] == "heard: that one, yes"
    assert contents(server.state(thread, assistant_id=asker)["values"]) == ["hello", "that one, yes"]


def start(server, thread: str, calls: list) -> str:
    configurable = {"calls": calls, "assistants": sorted({each["name"] for each in calls})}
    body = {"assistant_id": "boss", "input": {"messages": "go"}, "config": {"configurable": configurable}}
    return server.ask("POST", f"/threads/{thread}/runs", json=body)["run_id"]


def test_after_a_crash_it_continues_from_its_checkpoint(server, gate):
    slow = make_snail(server, gate)
    thread = server.thread()
    run = start(server, thread, [call("snail")])
    wait_for(lambda: gate.requests, what="the delegate at the gate")
    wait_for(lambda: server.state(thread, assistant_id=slow)["next"] == ["gate"], what="the state before the gate")
    server.kill()
    server.restart()
    values = server.ask("GET", f"/threads/{thread}/runs/{run}/join")
    assert contents(values)[-1] == "heard: through the gate"
    # The delegate received one message and started once.
    assert contents(server.state(thread, assistant_id=slow)["values"]) == ["hello", "begun", "through the gate"]


def test_an_answer_that_was_given_before_a_crash_is_not_given_again(server, gate):
    make(server, "careful", "clerk", gate=gate.url)
    thread = server.thread()
    say(server, thread, "go", [call("clerk")])
    body = {
        "assistant_id": "boss",
        "command": {"resume": "you may"},
        "config": {"configurable": {"assistants": ["clerk"]}},
    }
    run = server.ask("POST", f"/threads/{thread}/runs", json=body)["run_id"]
    wait_for(lambda: gate.requests, what="the delegate at the gate")
    server.kill()
    server.restart()
    server.ask("GET", f"/threads/{thread}/runs/{run}/join")
    # The second interrupt is pending: "you may" was for the first.
    [task] = server.state(thread)["tasks"]
    assert [each["value"]["say"] for each in task["interrupts"]] == ["really?"]
    values = server.wait("boss", thread=thread, command={"resume": "really"}, configurable={"assistants": ["clerk"]})
    assert contents(values)[-1] == "heard: really"


def test_a_question_that_was_answered_elsewhere(server, gate):
    clerk = make(server, "asker", "clerk")
    thread = server.thread()
    say(server, thread, "go", [call("clerk")])
    server.wait(clerk, {"messages": "something else"}, thread=thread)
    values = server.wait("boss", thread=thread, command={"resume": "that one"}, configurable={"assistants": ["clerk"]})
    assert "no longer open" in contents(values)[-1]


def stopped(server, gate, thread: str, slow: str, run: str) -> dict:
    wait_for(lambda: gate.requests, what="the delegate at the gate")
    receipt = server.ask("POST", f"/threads/{thread}/runs/{run}/cancel", params={"wait": "1"})
    gate.wait_closed()
    state = server.state(thread, assistant_id=slow)
    assert state["next"] == ["gate"] and contents(state["values"]) == ["hello", "begun"]
    return receipt


def test_a_cancel_stops_the_delegate_first(server, gate):
    slow = make_snail(server, gate)
    thread = server.thread()
    run = start(server, thread, [call("snail")])
    receipt = stopped(server, gate, thread, slow, run)
    assert receipt["status"] == "interrupted" and receipt["stopped_at_step"] >= 1
    assert receipt["tokens_streamed"] >= 1
    assert receipt["tools_in_flight"] == [{"name": "snail", "id": "call_snail"}]
    kept = server.ask("GET", f"/threads/{thread}/runs/{run}")["receipt"]
    assert kept == {key: receipt[key] for key in ("stopped_at_step", "tokens_streamed", "tools_in_flight")}
    # The agent and the delegate resume; the delegate does not receive its message again.
    values = server.wait("boss", thread=thread, configurable={"assistants": ["snail"]})
    assert contents(values)[-1] == "heard: through the gate"
    assert contents(server.state(thread, assistant_id=slow)["values"]) == ["hello", "begun", "through the gate"]


def test_tools_in_flight_of_delegates_are_named(server, gate):
    slow = make_snail(server, gate)
    middle = make(server, "boss", "middle", assistants=["snail"], calls=[call("snail")])
    thread = server.thread()
    run = start(server, thread, [call("middle")])
    receipt = stopped(server, gate, thread, slow, run)
    assert sorted(each["name"] for each in receipt["tools_in_flight"]) == ["middle", "snail"]
    assert server.state(thread, assistant_id=middle)["next"] == ["tools"]


def test_no_agent_calls_itself(server):
    first = make(server, "boss", "first", assistants=["second"], calls=[call("second")])
    make(server, "boss", "second", assistants=["first"], calls=[call("first")])
    thread = server.thread()
    values = server.wait(first, {"messages": "go"}, thread=thread)
    tools = [m for m in values["messages"] if m["type"] == "tool"]
    assert len(tools) == 1 and "heard: Error" in tools[0]["content"] and "already running" in tools[0]["content"]


def test_circular_calls_are_refused(server):
    make(server, "boss", "left", assistants=["right"], calls=[call("right")])
    make(server, "boss", "right", assistants=["left"], calls=[call("left")])
    thread = server.thread()
    values = say(server, thread, "go", [call("left"), call("right")])
    answers = contents(values, "tool")
    assert len(answers) == 2 and any("already running" in answer for answer in answers)


def test_there_is_a_limit_to_the_depth(server):
    names = [f"level{i}" for i in range(7)]
    for name, below in zip(names, [*names[1:], None], strict=True):
        if below:
            make(server, "boss", name, assistants=[below], calls=[call(below)])
        else:
            make(server, "parrot", name, voice="the last")
    thread = server.thread()
    values = say(server, thread, "go", [call("level0")])
    assert "more than 5 levels deep" in contents(values)[-1]


def test_a_failing_delegate_is_an_error_of_the_tool(heddle):
    broken = {
        "name": "broken",
        "state": MESSAGES,
        "nodes": {"fail": {"kind": "fail", "error": {"type": "ValueError", "message": "it broke"}}},
        "edges": [["__start__", "fail"], ["fail", "__end__"]],
    }
    server = heddle(graphs={**GRAPHS, "broken": broken})
    thread = server.thread()
    values = say(server, thread, "go", [call("broken")])
    tool = next(m for m in values["messages"] if m["type"] == "tool")
    assert tool["status"] == "error" and "it broke" in tool["content"]


def test_disconnecting_stops_the_delegate(server, gate):
    slow = make_snail(server, gate)
    thread = server.thread()
    run_id, begun = [], threading.Event()

    def listen() -> None:
        body = {
            "assistant_id": "boss", "input": {"messages": "go"}, "stream_mode": "messages-tuple", "on_disconnect": "cancel",
            "config": {"configurable": {"calls": [call("snail")], "assistants": ["snail"]}},
        }  # fmt: skip
        with server.client() as client, client.stream("POST", f"/threads/{thread}/runs/stream", json=body) as answer:
            run_id.append(answer.headers["content-location"].rsplit("/", 1)[1])
            wait_for(lambda: gate.requests, what="the delegate at the gate")
            begun.set()

    reader = threading.Thread(target=listen)
    reader.start()
    assert begun.wait(60)
    reader.join()
    run = wait_for(
        lambda: next(
            (r for r in [server.ask("GET", f"/threads/{thread}/runs/{run_id[0]}")] if r["status"] == "interrupted"),
            None,
        ),
        what="the end of the run",
    )
    assert run["receipt"]["tools_in_flight"] == [{"name": "snail", "id": "call_snail"}]
    gate.wait_closed()
    assert server.state(thread, assistant_id=slow)["next"] == ["gate"]
