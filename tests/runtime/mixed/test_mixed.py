"""Native, Python and TypeScript assistants in one server, in one thread, calling each other."""

from __future__ import annotations

import re
import uuid
from pathlib import Path

import pytest
from programs import wait_for

PROJECT = Path(__file__).parent / "projects" / "three"
TELLERS = ["native", "python", "script"]
CALLERS = ["caller", "tscaller"]


@pytest.fixture(scope="module")
def server(project_module):
    return project_module(folder=PROJECT)


def human(text: str) -> dict:
    return {"messages": [{"role": "user", "content": text}]}


def contents(values: dict) -> list[str]:
    return [message["content"] for message in values["messages"]]


def last(values: dict) -> str:
    return contents(values)[-1]


def root(server, graph: str) -> str:
    [found] = server.ask("POST", "/assistants/search", json={"graph_id": graph, "metadata": {"created_by": "system"}})
    return "assistant:" + found["assistant_id"]


def tool_call(name: str, words: str) -> dict:
    return {"name": name, "args": {"message": words}, "id": f"call_{name}"}


# ---- one thread ------------------------------------------------------------------------------


def test_each_runtime_has_its_own_history(server):
    thread = server.thread()
    for words in ("one", "two"):
        for graph in TELLERS:
            server.wait(graph, human(f"{words} for {graph}"), thread)
    for graph in TELLERS:
        state = server.state(thread, assistant_id=graph)
        said = contents(state["values"])
        assert said[0] == f"one for {graph}" and said[2] == f"two for {graph}"
        assert said[3] == f"{graph}: " + " / ".join(said[:3])
        assert state["checkpoint"]["checkpoint_ns"] == root(server, graph)
        assert state["next"] == []
        history = server.ask("GET", f"/threads/{thread}/history", params={"assistant_id": graph, "limit": 100})
        assert [each["next"] for each in history] == [[], ["reply"], ["__start__"]] * 2
        runtime = {"native": None, "script": "js"}.get(graph, graph)
        assert {each["metadata"].get("runtime") for each in history} == {runtime}
    assert server.ask("GET", f"/threads/{thread}")["status"] == "idle"


@pytest.mark.parametrize("graph", TELLERS)
def test_the_same_events_in_every_runtime(server, graph):
    told = server.stream(
        graph,
        human("hello"),
        stream_mode=["values", "updates", "messages", "messages-tuple", "tasks", "checkpoints", "debug"],
    )
    names = [name for name, *_ in told]
    assert names[0] == "metadata" and names[-1] == "end"
    assert {"values", "updates", "messages", "messages/complete", "tasks", "checkpoints", "debug"} <= set(names)
    values = [data for name, data, *_ in told if name == "values"]
    assert [len(each["messages"]) for each in values] == [1, 2]
    assert last(values[-1]) == f"{graph}: hello"
    [update] = [data for name, data, *_ in told if name == "updates"]
    assert last(update["reply"]) == f"{graph}: hello"
    # Earlier messages are marked as earlier, and none is duplicated.
    complete = [message["id"] for name, data, *_ in told if name == "messages/complete" for message in data]
    assert complete == [each["id"] for each in values[-1]["messages"]]
    places = [data["checkpoint"]["checkpoint_ns"] for name, data, *_ in told if name == "checkpoints"]
    assert places and set(places) == {root(server, graph)}


@pytest.mark.parametrize("graph", TELLERS)
def test_states_are_updated(server, graph):
    thread = server.thread(metadata={"graph_id": graph})
    server.wait(graph, human("first"), thread)
    made = server.ask(
        "POST", f"/threads/{thread}/state", json={"values": human("by hand"), "as_node": "reply", "assistant_id": graph}
    )
    state = server.state(thread, assistant_id=graph)
    assert state["checkpoint"]["checkpoint_id"] == made["checkpoint_id"]
    assert made["checkpoint"]["checkpoint_ns"] == root(server, graph)
    assert contents(state["values"])[-1] == "by hand" and state["next"] == []
    # From the middle: a branch, which is the head from now on.
    history = server.ask("GET", f"/threads/{thread}/history", params={"assistant_id": graph})
    before = next(each for each in history if each["next"] == ["reply"])
    server.ask(
        "POST",
        f"/threads/{thread}/state",
        json={"values": human("otherwise"), "as_node": "__start__", "checkpoint": before["checkpoint"]},
    )
    state = server.state(thread, assistant_id=graph)
    assert contents(state["values"]) == ["first", "otherwise"] and state["next"] == ["reply"]
    assert last(server.wait(graph, None, thread)) == f"{graph}: first / otherwise"


@pytest.mark.parametrize("graph", ["native", "python"])
def test_threads_begin_with_supersteps(server, graph):
    steps = [
        {"updates": [{"values": human("asked"), "as_node": "__start__"}]},
        {"updates": [{"values": {"messages": [{"role": "ai", "content": "said"}]}, "as_node": "reply"}]},
    ]
    thread = server.thread(metadata={"graph_id": graph}, supersteps=steps)
    assert contents(server.state(thread)["values"]) == ["asked", "said"]
    assert last(server.wait(graph, human("more"), thread)) == f"{graph}: asked / said / more"


def test_supersteps_that_fail_leave_no_thread(server):
    id = "6a1e6d2c-5f0e-4d0f-9d0b-1f1e2d3c4b5a"
    steps = [{"updates": [{"values": human("x"), "as_node": "nobody"}]}]
    body = {"thread_id": id, "metadata": {"graph_id": "python"}, "supersteps": steps}
    assert "nobody" in server.ask("POST", "/threads", status=422, json=body)["detail"]
    server.ask("GET", f"/threads/{id}", status=404)


@pytest.mark.parametrize("graph", TELLERS)
def test_graphs_are_drawn_and_described(server, graph):
    drawn = server.ask("GET", f"/assistants/{graph}/graph")
    assert [node["id"] for node in drawn["nodes"]] == ["__start__", "reply", "__end__"]
    with server.client() as client:
        picture = client.get(f"/assistants/{graph}/graph", params={"format": "svg"})
    assert picture.headers["content-type"] == "image/svg+xml"
    assert re.findall(r'<g class="node" data-node="([^"]*)">', picture.text) == ["__start__", "reply", "__end__"]
    schemas = server.ask("GET", f"/assistants/{graph}/schemas")
    assert schemas["graph_id"] == graph and "messages" in schemas["input_schema"]["properties"]
    assert server.ask("GET", f"/assistants/{graph}/subgraphs") == {}


# ---- retries ---------------------------------------------------------------------------------


def turns(server, thread: str, graph: str) -> list[dict]:
    answer = server.ask("GET", f"/threads/{thread}/messages", params={"assistant_id": graph})
    return [each for each in answer["messages"] if each["type"] == "human"]


def place(turn: dict) -> tuple[int, int]:
    """The position and the number of alternatives."""
    [own] = [i for i, other in enumerate(turn["alternatives"]) if other["current"]]
    return own + 1, len(turn["alternatives"])


def again(server, thread: str, graph: str, fork: str, text: str) -> list[str]:
    message = {"role": "user", "content": text, "id": str(uuid.uuid4())}
    return contents(server.wait(graph, {"messages": [message]}, thread, checkpoint_id=fork))


@pytest.mark.parametrize("graph", TELLERS)
def test_messages_are_retried(server, graph):
    thread = server.thread()
    server.wait(graph, human("one"), thread)
    server.wait(graph, human("two"), thread)
    for number in (2, 3, 4):
        last_turn = turns(server, thread, graph)[1]
        assert again(server, thread, graph, last_turn["fork_checkpoint_id"], f"two {number}")[2] == f"two {number}"
        assert [place(turn) for turn in turns(server, thread, graph)] == [(1, 1), (number, number)]
    # The official hook forks from the parent of the first state with the message: its input.
    first = turns(server, thread, graph)[1]["checkpoint_id"]
    parent = server.ask("GET", f"/threads/{thread}/state/{first}")["parent_checkpoint"]["checkpoint_id"]
    assert again(server, thread, graph, parent, "two 5")[2] == "two 5"
    assert place(turns(server, thread, graph)[1]) == (5, 5)
    for number in (2, 3):
        first = turns(server, thread, graph)[0]
        assert again(server, thread, graph, first["fork_checkpoint_id"], f"one {number}")[0] == f"one {number}"
        assert [place(turn) for turn in turns(server, thread, graph)] == [(number, number)]


# ---- calling each other ----------------------------------------------------------------------


@pytest.mark.parametrize("caller", CALLERS)
def test_workers_call_every_runtime(server, caller):
    thread = server.thread()
    other = "script" if caller == "caller" else "python"
    told = server.stream(
        caller, human(f"native a; {other} b; native c"), thread, stream_mode=["updates"], stream_subgraphs=True
    )
    state = server.state(thread, assistant_id=caller)
    assert last(state["values"]) == f"native: a | {other}: b | native: a / native: a / c"
    # They run in their own runtime, and are shown in the caller's.
    assert contents(server.state(thread, assistant_id=other)["values"]) == ["b", f"{other}: b"]
    names = [name for name, *_ in told if name.startswith("updates")]
    assert names[-1] == "updates" and len(names) == 4
    assert len(set(names[:3])) == 1 and names[0].startswith("updates|call:")
    run = state["metadata"]["run_id"]
    assert server.state(thread, assistant_id=other)["metadata"]["run_id"] == run
    assert server.state(thread, assistant_id="native")["metadata"]["run_id"] == run


@pytest.mark.parametrize("caller", CALLERS)
def test_failing_calls(server, caller):
    thread = server.thread()
    answer = server.wait(caller, human("nobody x"), thread)
    assert 'unknown assistant "nobody"' in answer["__error__"]["message"]
    answer = server.wait(caller, human(f"{caller} x"), thread)
    assert "waits for this call" in answer["__error__"]["message"]
    answer = server.wait(caller, human("wrong x"), thread)
    assert "nothing was found" in answer["__error__"]["message"]


@pytest.mark.parametrize("caller", CALLERS)
def test_the_caller_cannot_answer_an_interrupt(server, caller):
    """Its run ends; the called assistant still waits for the reply, in its own namespace."""
    thread = server.thread()
    answer = server.wait(caller, human("asker x"), thread)
    assert answer["__error__"]["error"] == "DelegateError" and "interrupted" in answer["__error__"]["message"]
    assert server.state(thread, assistant_id="asker")["next"] == ["ask"]
    assert last(server.wait("asker", None, thread, command={"resume": 5})) == "you are 5"


def test_callers_in_callers(server):
    answer = server.wait("caller", human("tscaller native inner"))
    assert last(answer) == "native: inner"


@pytest.mark.parametrize("graph", ["python", "script"])
def test_native_agents_call_workers(server, graph):
    thread = server.thread()
    config = {"assistants": [graph], "calls": [tool_call(graph, "from native")]}
    told = server.stream(
        "boss", human("go"), thread, config, stream_mode=["updates", "messages-tuple"], stream_subgraphs=True
    )
    values = server.state(thread, assistant_id="boss")["values"]
    assert contents(values)[-2:] == [f"{graph}: from native", f"heard: {graph}: from native"]
    assert contents(server.state(thread, assistant_id=graph)["values"]) == ["from native", f"{graph}: from native"]
    assert any(name.startswith("updates|tools:") and "reply" in data for name, data, *_ in told)
    # The second call shows its memory.
    server.wait("boss", human("again"), thread, config)
    assert len(server.state(thread, assistant_id=graph)["values"]["messages"]) == 4


def test_an_interrupt_of_a_worker_passes_through_the_agent(server):
    thread = server.thread()
    config = {"assistants": ["asker"], "calls": [tool_call("asker", "well?")]}
    asked = server.wait("boss", human("go"), thread, config)["__interrupt__"]
    assert [each["value"] for each in asked] == ["how old?"]
    assert server.ask("GET", f"/threads/{thread}")["status"] == "interrupted"
    answer = server.wait("boss", None, thread, config, command={"resume": 42})
    assert contents(answer)[-2:] == ["you are 42", "heard: you are 42"]


# ---- ends ------------------------------------------------------------------------------------


def stop(server, thread: str, graph: str, words: str, configurable=None) -> dict:
    """An endless run is started, observed, and stopped."""
    config = {"configurable": configurable or {}}
    run = server.ask(
        "POST", f"/threads/{thread}/runs", json={"assistant_id": graph, "input": human(words), "config": config}
    )["run_id"]
    wait_for(lambda: server.state(thread, assistant_id="lasting")["next"] == ["last"], what="the run to be at work")
    server.ask("POST", f"/threads/{thread}/runs/{run}/cancel", params={"wait": "true"})
    return server.ask("GET", f"/threads/{thread}/runs/{run}")


def test_a_run_is_stopped(server):
    thread = server.thread()
    assert stop(server, thread, "lasting", "go")["status"] == "interrupted"
    state = server.state(thread)
    assert state["next"] == ["last"] and last(state["values"]) == "begun"
    assert server.ask("GET", "/metrics", params={"format": "json"})["heddle_runs_running"] == 0


@pytest.mark.parametrize("graph", ["caller", "tscaller", "boss"])
def test_a_cancel_stops_called_assistants(server, graph):
    thread = server.thread()
    config = {"assistants": ["lasting"], "calls": [tool_call("lasting", "x")]}
    assert stop(server, thread, graph, "lasting x", config)["status"] == "interrupted"
    assert server.state(thread, assistant_id=graph)["next"] != []
    # Nothing of it is left: the thread accepts another run at once.
    assert last(server.wait("python", human("still here"), thread)) == "python: still here"


def test_errors_have_a_location_and_the_log_has_the_traceback(server):
    told = server.stream("wrong", human("x"))
    [error] = [data for name, data, *_ in told if name == "error"]
    assert error["error"] == "LookupError" and error["message"] == "nothing was found in graphs.py"
    assert error["file"] == "graphs.py" and error["line"] > 0
    assert "traceback" not in error
    wait_for(lambda: "raise LookupError" in server.log.read_text(), what="the traceback in the log")
    assert told[-1][1]["status"] == "error"


def test_a_graph_that_fails_to_load_is_listed_with_the_reason(server):
    assert root(server, "broken")
    server.wait("python", human("x"))  # the worker has loaded its graphs
    told = server.stream("broken", human("x"))
    [error] = [data for name, data, *_ in told if name == "error"]
    assert error["error"] == "ModuleNotFoundError" and "a_module_that_nobody_has" in error["message"]
    assert error["file"].endswith("broken.py") and error["line"] == 1
    assert "a_module_that_nobody_has" in server.ask("GET", "/assistants/broken/schemas", status=422)["detail"]


def test_secrets_are_seen_and_not_kept(server):
    thread = server.thread()
    secret = "sk-nobody-may-keep-this-0123456789"
    body = {"stream_mode": ["values", "debug", "updates"], "stream_resumable": True}
    told = server.stream("keeper", human("x"), thread, {"openai_api_key": secret}, **body)
    [said] = [last(data["keep"]) for name, data, *_ in told if name == "updates"]
    assert said.startswith(f"a key of {len(secret)} bytes: ")
    assert secret not in repr(told)
    assert secret not in repr(server.state(thread))
    assert secret.encode() not in server.database()


def test_a_late_subscriber_gets_the_rest(server):
    thread, gate = server.thread(), server.folder / "gate"
    run = server.ask(
        "POST",
        f"/threads/{thread}/runs",
        json={"assistant_id": "patient", "input": human(str(gate)), "stream_mode": ["updates"]},
    )["run_id"]
    wait_for(lambda: server.state(thread)["next"] == ["gate"], what="the run to be at work")
    with server.client() as client, client.stream("GET", f"/threads/{thread}/runs/{run}/stream") as answer:
        gate.touch()
        told = answer.read().decode()
    assert "event: updates" in told and '"gate":' in told and '"open"' in told


# ---- lost workers ----------------------------------------------------------------------------


def test_a_lost_worker_is_replaced_and_the_run_continues(server):
    deaths = server.folder / "deaths"
    deaths.write_text("1")
    thread = server.thread()
    told = server.stream("fragile", human(str(deaths)), thread, stream_mode=["updates"], durability="sync")
    assert [data["attempt"] for name, data, *_ in told if name == "metadata"] == [1, 2]
    # Stored steps are not repeated.
    assert [list(data) for name, data, *_ in told if name == "updates"] == [["begin"], ["die"]]
    state = server.state(thread)
    assert contents(state["values"])[1:] == ["begun", "survived"]
    assert state["metadata"]["run_attempt"] == 2
    assert server.ask("GET", "/metrics", params={"format": "json"})["heddle_worker_restarts_total"]["python"] >= 1


def test_three_times_and_no_more(server):
    deaths = server.folder / "deaths"
    deaths.write_text("5")
    thread = server.thread()
    told = server.stream("fragile", human(str(deaths)), thread, stream_mode=["updates"])
    attempts = [data["attempt"] for name, data, *_ in told if name == "metadata"]
    # The checkpoint of the input may be stored by the second attempt only: that is progress.
    assert attempts in ([1, 2, 3], [1, 2, 3, 4])
    [error] = [data for name, data, *_ in told if name == "error"]
    assert error["error"] == "WorkerLost" and "signal 9" in error["message"]
    assert deaths.read_text() == str(5 - len(attempts))
    assert server.ask("GET", f"/threads/{thread}")["status"] == "error"
    deaths.write_text("0")
    assert last(server.wait("fragile", None, thread)) == "survived"


def test_counts_of_workers(server):
    server.wait("python", human("x"))
    workers = server.ask("GET", "/info")["workers"]
    assert set(workers) == {"python", "js"}
    assert all(each["ready"] >= 1 for each in workers.values())
