"""/threads/{id}/state, /history, /branches and /timeline: responses and refusals."""

import uuid

import httpx
import pytest
from load import eventually
from plain import Thread, events, human, identity, texts
from server import Server
from table import refused, refuses_too_much, refuses_what_is_not_json

pytestmark = pytest.mark.beyond_peer("refuses differently")
MEMBERS = {
    "values", "next", "tasks", "metadata", "created_at", "checkpoint", "parent_checkpoint", "interrupts",
    "checkpoint_id", "parent_checkpoint_id",
}  # fmt: skip
EMPTY = {
    "values": {}, "next": [], "tasks": [], "metadata": {}, "created_at": None, "checkpoint": None,
    "parent_checkpoint": None, "interrupts": [], "checkpoint_id": None, "parent_checkpoint_id": None,
}  # fmt: skip
UNKNOWN = "1f000000-0000-6000-8000-000000000000"


@pytest.fixture
def thread(http):
    return Thread(http)


@pytest.fixture
def counted(thread):
    """A thread with seven checkpoints of one agent."""
    thread.run("loop", input={"count": 0})
    return thread


@pytest.fixture
def napping(thread):
    """A busy thread that has a state."""
    thread.say("echo", "before")
    busy = thread.ask("POST", thread.path("/runs"), json={"assistant_id": "nap", "input": {"ms": 600_000}})
    eventually(lambda: thread.state()["next"] == ["sleep"])
    yield thread
    thread.http.post(thread.path(f"/runs/{busy['run_id']}/cancel?wait=1"))


def update(thread, status=200, **body):
    return thread.ask("POST", thread.path("/state"), status, json=body)


# ---- reading


def test_a_state_has_all_members(counted):
    state = counted.state()
    assert set(state) == MEMBERS and set(state["checkpoint"]) == {
        "thread_id", "checkpoint_ns", "checkpoint_id", "checkpoint_map",
    }  # fmt: skip
    assert state["checkpoint_id"] == identity(state)
    assert state["parent_checkpoint_id"] == state["parent_checkpoint"]["checkpoint_id"]


def test_states_of_threads_without_checkpoints(http, thread):
    graph = Thread(http, metadata={"graph_id": "echo"})
    strange = Thread(http, metadata={"graph_id": "nobody", "assistant_id": {"a": 1}})
    for each in (thread, graph, strange):
        assert each.state() == EMPTY
        assert each.ask("POST", each.path("/state/checkpoint"), json={}) == EMPTY
        assert each.history() == [] == each.ask("GET", each.path("/history"))
        assert each.ask("GET", each.path("/branches"))["branches"] == [] == each.timeline()
        assert each.ask("GET", each.path(f"/state/{UNKNOWN}"), 404) == {"detail": "Checkpoint not found"}
    assert graph.ask("GET", graph.path("/branches"))["checkpoint_ns"].startswith("assistant:")


@pytest.mark.parametrize("params", [{}, {"checkpoint_ns": ""}, {"assistant_id": "loop"}, {"subgraphs": "yes"}])
def test_a_state_in_all_ways(counted, params):
    history = counted.history()
    assert counted.state(**params) == history[0]
    old = counted.ask("GET", counted.path(f"/state/{identity(history[2])}"), params=params)
    assert old == history[2]
    for checkpoint in (
        history[2]["checkpoint"],
        {"checkpoint_id": identity(history[2])},
        {"checkpoint_id": identity(history[2]), "checkpoint_ns": "", "checkpoint_map": None, "thread_id": "other"},
        {"checkpoint_ns": None, "checkpoint_map": {"": identity(history[2])}},
    ):
        body = {"checkpoint": checkpoint, "subgraphs": True}
        assert counted.ask("POST", counted.path("/state/checkpoint"), json=body) == history[2]
    body = {"checkpoint": {"checkpoint_id": None}}
    assert counted.ask("POST", counted.path("/state/checkpoint"), json=body) == history[0]


def test_namespaces_without_checkpoints(counted):
    for params in (
        {"assistant_id": "echo"}, {"assistant_id": str(uuid.uuid4())}, {"checkpoint_ns": "nowhere"},
        {"checkpoint_ns": "nowhere|at:all"}, {"checkpoint_ns": "assistant:x"}, {"checkpoint_ns": "|"},
        {"checkpoint_ns": f"{counted.state()['checkpoint']['checkpoint_ns']}|no:such"},
    ):  # fmt: skip
        assert counted.state(**params) == EMPTY, params
        assert counted.history(**params) == [] == counted.ask("GET", counted.path("/history"), params=params)
        body = {"checkpoint": {"checkpoint_id": identity(counted.history()[0])}, **params}
        assert counted.ask("POST", counted.path("/state/checkpoint"), 404, json=body)


@pytest.mark.parametrize(
    ("select", "shown"),
    [
        (["next"], {"next": []}),
        (["values.count"], {"values": {"count": 5}}),
        (["values.count", "values.nothing", "values.count"], {"values": {"count": 5}}),
        (["values.nothing"], {"values": {}}),
        (["tasks", "next", "interrupts"], {"next": [], "tasks": [], "interrupts": []}),
    ],
)
def test_states_select(counted, select, shown):
    assert counted.ask("GET", counted.path("/state"), params={"select": ",".join(select)}) == shown
    assert counted.ask("GET", counted.path("/state"), params={"select": select}) == shown
    own = identity(counted.state())
    assert counted.ask("GET", counted.path(f"/state/{own}"), params={"select": select}) == shown
    assert counted.ask("POST", counted.path("/state/checkpoint"), json={"select": select}) == shown
    assert counted.ask("POST", counted.path("/history"), json={"select": select, "limit": 1}) == [shown]
    assert counted.ask("GET", counted.path("/history"), params={"select": select, "limit": 1}) == [shown]


def test_selected_values_are_whole_when_both_are_requested(counted):
    state = counted.state()
    found = counted.ask("GET", counted.path("/state"), params={"select": ["values.count", "values"]})
    assert found == {"values": state["values"]}


@pytest.mark.parametrize(
    ("rest", "params"),
    [
        ("/state", {"subgraphs": "perhaps"}),
        ("/state", {"select": "colour"}),
        ("/state", {"checkpoint_ns": "x" * 5000}),
        ("/state/not-a-uuid", {}),
        (f"/state/{UNKNOWN}", {"subgraphs": "2"}),
        ("/history", {"limit": 0}),
        ("/history", {"limit": 1001}),
        ("/history", {"limit": "ten"}),
        ("/history", {"select": "colour"}),
        ("/branches", {"checkpoint_ns": "x" * 5000}),
        ("/timeline", {"limit": 0}),
        ("/timeline", {"limit": 1001}),
        ("/timeline", {"offset": -1}),
    ],
)
def test_looking_refuses(http, counted, rest, params):
    refused(http, "GET", counted.path(rest), 422, params=params)


def test_unknown_agents(http, counted):
    for rest in ("/state", "/history", "/branches"):
        text = refused(http, "GET", counted.path(rest), 404, params={"assistant_id": "nobody"})
        assert text.startswith('No assistant found for "nobody".')
    refused(http, "POST", counted.path("/state"), 404, "nobody", json={"values": {}, "assistant_id": "nobody"})


@pytest.mark.parametrize(
    "body",
    [
        {"checkpoint": 1},
        {"checkpoint": "x"},
        {"checkpoint": {"checkpoint_id": 1}},
        {"checkpoint": {"checkpoint_ns": 1}},
        {"checkpoint": {"checkpoint_map": 1}},
        {"checkpoint_ns": 1},
        {"assistant_id": 1},
    ],
)
def test_wrong_checkpoints_are_refused(http, counted, body):
    for method, rest in (
        ("POST", "/state/checkpoint"),
        ("POST", "/state"),
        ("POST", "/history"),
        ("PATCH", "/branches"),
    ):
        refused(http, method, counted.path(rest), 422, json={"values": {}, "checkpoint_id": UNKNOWN, **body})


def test_state_at_a_checkpoint_refuses(http, counted):
    path = counted.path("/state/checkpoint")
    for body in ({"subgraphs": "true"}, {"subgraphs": 1}, {"select": "next"}, {"select": ["colour"]}):
        refused(http, "POST", path, 422, json=body)
    text = refused(http, "POST", path, 404, json={"checkpoint": {"checkpoint_id": UNKNOWN}})
    assert text == "Checkpoint not found"
    refuses_what_is_not_json(http, "POST", path)
    refuses_too_much(http, "POST", path)


# ---- history


def test_histories(counted):
    everything = counted.history()
    assert len(everything) == 7 and everything == counted.ask("GET", counted.path("/history"))
    assert counted.ask("POST", counted.path("/history")) == everything  # ten of them without a body
    assert counted.ask("GET", counted.path("/history"), params={"limit": 2}) == everything[:2]
    third = everything[2]["checkpoint"]
    for before in (third["checkpoint_id"], third, {"configurable": third}):
        assert counted.history(before=before) == everything[3:]
    assert counted.ask("GET", counted.path("/history"), params={"before": third["checkpoint_id"]}) == everything[3:]
    for nothing in (None, {"checkpoint_id": None}, ""):
        assert counted.history(before=nothing) == everything
    assert counted.history(metadata={"step": 3}) == everything[2:3]
    assert counted.history(metadata={"source": "input"}, limit=1) == everything[-1:]
    assert counted.history(metadata={}) == everything
    assert counted.history(checkpoint=third) == [everything[2]]
    assert counted.history(checkpoint={"checkpoint_ns": third["checkpoint_ns"]}) == everything


@pytest.mark.parametrize(
    "body",
    [
        {"limit": 0}, {"limit": 1001}, {"limit": "x"}, {"before": 1}, {"before": []}, {"before": {}},
        {"before": {"configurable": {}}}, {"before": {"checkpoint_id": 1}}, {"metadata": 1}, {"metadata": []},
        {"select": [1]}, {"select": ["colour"]},
    ],
)  # fmt: skip
def test_history_refuses(http, counted, body):
    refused(http, "POST", counted.path("/history"), 422, json=body)


def test_history_refuses_invalid_json(http, counted):
    refuses_what_is_not_json(http, "POST", counted.path("/history"), needs_body=False)
    refuses_too_much(http, "POST", counted.path("/history"))


# ---- updating


def test_a_state_update(counted):
    before = counted.state()
    answer = update(counted, values={"count": 10, "log": ["by hand"]})
    state = counted.state()
    assert answer["checkpoint"] == answer["configurable"] == state["checkpoint"]
    assert answer["checkpoint_id"] == identity(state)
    assert state["values"] == {"count": 15, "log": [*before["values"]["log"], "by hand"]}
    assert state["parent_checkpoint"] == before["checkpoint"]
    metadata = state["metadata"]
    assert metadata["source"] == "update" and metadata["step"] == before["metadata"]["step"] + 1
    assert metadata["thread_id"] == counted.id and metadata["graph_id"] == "loop" and "run_id" not in metadata
    record = counted.record()
    assert record["values"] == state["values"] and record["status"] == "idle"
    assert record["state_updated_at"] == record["updated_at"] > record["created_at"]


def test_a_change_of_an_old_checkpoint_is_a_branch(counted):
    old = counted.history()[3]
    for point in (
        {"checkpoint": old["checkpoint"]},
        {"checkpoint_id": identity(old)},
        {"checkpoint": {"checkpoint_id": identity(old)}, "assistant_id": "loop"},
        {"checkpoint": {"checkpoint_id": identity(old)}, "checkpoint_ns": old["checkpoint"]["checkpoint_ns"]},
    ):
        update(counted, values={"log": ["branch"]}, as_node="step", **point)
        state = counted.state()  # it is the current head
        assert state["parent_checkpoint"] == old["checkpoint"] and state["values"]["log"][-1] == "branch"
        assert state["values"]["count"] == 2


def test_a_change_continues_from_the_chosen_head(counted):
    old = counted.history()[3]
    counted.ask("PATCH", counted.path("/branches"), json={"checkpoint_id": identity(old)})
    update(counted, values={"count": 100}, as_node="step")
    state = counted.state()
    assert state["parent_checkpoint"] == old["checkpoint"] and state["values"]["count"] == 102
    assert counted.branches()["head"] == identity(state)


def test_nothing_to_write_is_a_fork(counted):
    head = counted.state()
    for body in ({}, {"values": None}, {"values": []}, {"values": None, "as_node": "__copy__"}):
        update(counted, **body, checkpoint=head["checkpoint"])
        state = counted.state()
        assert state["metadata"]["source"] == "fork" and state["values"] == head["values"]
        assert state["parent_checkpoint"] == head["parent_checkpoint"]


def test_several_changes_at_once(counted):
    update(counted, values=[{"count": 1}, {"count": 2, "log": ["two"]}], as_node="step")
    state = counted.state()
    assert state["values"]["count"] == 8 and state["values"]["log"][-1] == "two"
    update(counted, values=[{"count": 1}])
    assert counted.state()["values"]["count"] == 9


def standing(thread: Thread) -> tuple:
    """Returns status and interrupts of the record, which must equal those of the state."""
    record, state = thread.record(), thread.state()
    asked = {task["id"]: task["interrupts"] for task in state["tasks"] if task["interrupts"]}
    assert record["interrupts"] == asked and record["values"] == state["values"]
    assert record["status"] == ("interrupted" if state["next"] else "idle")
    return record["status"], state["next"], len(asked)


def test_status_and_questions_follow_from_a_change(thread):
    """The thread stays interrupted as long as it has a next node, also without a pending interrupt."""
    thread.say("approval", "hi")
    assert standing(thread) == ("interrupted", ["ask"], 1)
    update(thread, values={"verdict": "not yet"}, as_node="__start__")
    assert standing(thread) == ("interrupted", ["ask"], 0)
    update(thread, values={"verdict": "by hand"}, as_node="ask")
    assert standing(thread) == ("interrupted", ["reply"], 0)
    update(thread, values=None, as_node="__end__")
    assert standing(thread) == ("idle", [], 0)


def test_a_change_of_a_thread_that_stopped_before_a_node(thread):
    thread.say("approval", "hi", interrupt_before=["ask"])
    assert standing(thread) == ("interrupted", ["ask"], 0)
    update(thread, values={"verdict": "by hand"})
    assert standing(thread) == ("interrupted", ["ask"], 0)
    update(thread, values={"verdict": "by hand"}, as_node="reply")
    assert standing(thread) == ("idle", [], 0)


def test_a_change_of_another_agent_does_not_show_in_the_thread(thread):
    thread.say("echo", "hi", "m1")
    thread.say("approval", "may I?")
    before = thread.record()
    update(thread, assistant_id="echo", values={"messages": [{"type": "human", "content": "ho", "id": "m1"}]})
    after = thread.record()
    assert texts(thread.state(assistant_id="echo")["values"])[0] == "ho"
    assert (after["status"], after["interrupts"]) == (before["status"], before["interrupts"])
    assert after["values"] == before["values"] and thread.state()["next"] == ["ask"]


def test_the_first_state_of_a_thread(http, thread):
    update(thread, values=human("hi", "m1"), assistant_id="echo")
    assert texts(thread.state()["values"]) == ["hi"] == texts(thread.record()["values"])
    assert texts(thread.run("echo", input=None)) == ["hi", "You said: hi"]


def test_a_change_in_a_subgraph(thread):
    thread.run("nested", input={**human("hi"), "ask": True})
    [task] = thread.state()["tasks"]
    answer = update(thread, checkpoint=task["checkpoint"], values={"messages": [{"role": "user", "content": "deep"}]},
                    as_node="question")  # fmt: skip
    assert answer["checkpoint"]["checkpoint_ns"] == task["checkpoint"]["checkpoint_ns"]
    inner = thread.state(checkpoint_ns=task["checkpoint"]["checkpoint_ns"])
    assert texts(inner["values"])[-1] == "deep" and inner["next"] == ["inner"]


def test_a_change_is_an_event_of_the_thread(server, http, thread):
    thread.say("echo", "hi")
    with http.stream("GET", thread.path("/stream"), params={"stream_mode": "state_update"}) as stream:
        answer = update(thread, values=human("ho"))
        text = ""
        for part in stream.iter_text():
            text += part
            if "data:" in text and text.endswith("\n\n"):
                break
    [(event, data, number)] = events(text)
    assert event == "state_update" and data == answer and int(number) > 0


@pytest.mark.parametrize(
    ("body", "named"),
    [
        ({"values": 1}, "values"),
        ({"values": "x"}, "values"),
        ({"values": [1]}, "values"),
        ({"values": {}, "as_node": 1}, "as_node"),
        ({"values": {}, "as_node": "nobody"}, "nobody"),
        ({"values": [{}, {}]}, "as_node"),
        ({"values": {"count": "text"}}, ""),
        ({"values": {}, "checkpoint_id": 1}, "checkpoint_id"),
    ],
)
def test_changing_refuses(http, counted, body, named):
    before = counted.history()
    refused(http, "POST", counted.path("/state"), 422, named, json=body)
    assert counted.history() == before


def test_changing_refuses_more(http, thread, counted):
    path = counted.path("/state")
    for point in ({"checkpoint_id": UNKNOWN}, {"checkpoint": {"checkpoint_id": UNKNOWN}}):
        assert refused(http, "POST", path, 404, json={"values": {}, **point}) == "Checkpoint not found"
    empty = Thread(http)
    refused(http, "POST", empty.path("/state"), 400, "graph", json={"values": {}})
    refuses_what_is_not_json(http, "POST", path)
    refuses_too_much(http, "POST", path)


def test_a_busy_agent_is_not_changed(http, napping):
    assert refused(http, "POST", napping.path("/state"), 409, json={"values": {}}) == "Thread is busy"
    body = {"checkpoint_id": identity(napping.state()), "assistant_id": "nap"}
    assert refused(http, "PATCH", napping.path("/branches"), 409, json=body) == "Thread is busy"
    assert napping.state()["values"]["log"] == ["before"]  # reading is always possible
    assert len(napping.history(assistant_id="echo")) == 3
    update(napping, values=human("x"), assistant_id="echo")
    assert len(napping.history(assistant_id="echo")) == 4


# ---- branches


def test_a_head_is_chosen(counted):
    history = counted.history()
    for chosen in (history[3], history[0], history[-1]):
        answer = counted.ask("PATCH", counted.path("/branches"), json={"checkpoint_id": identity(chosen)})
        assert answer["head"] == identity(chosen) == identity(counted.state())
        assert counted.record()["values"] == chosen["values"] and counted.history() == history
    body = {"checkpoint_id": identity(history[1]), "checkpoint_ns": history[1]["checkpoint"]["checkpoint_ns"]}
    assert counted.ask("PATCH", counted.path("/branches"), json=body)["head"] == identity(history[1])


def test_a_chosen_head_shows_its_interrupt(thread):
    thread.say("approval", "one", "m1")
    asked, record = thread.state(), thread.record()
    update(thread, values={"verdict": "x"}, as_node="reply", checkpoint=asked["checkpoint"])
    assert thread.record()["status"] == "idle"
    thread.ask("PATCH", thread.path("/branches"), json={"checkpoint_id": identity(asked)})
    again = thread.record()
    assert (again["status"], again["interrupts"]) == ("interrupted", record["interrupts"])
    assert texts(thread.run("approval", command={"resume": "yes"})) == ["one", "Approved: yes"]


def test_the_head_of_another_agent_does_not_show_in_the_thread(thread):
    thread.say("echo", "one", "m1")
    first = identity(thread.state())
    thread.say("echo", "two", "m2")
    thread.run("loop", input={"count": 0})
    before = thread.record()
    thread.ask("PATCH", thread.path("/branches"), json={"checkpoint_id": first, "assistant_id": "echo"})
    after = thread.record()
    assert after["values"] == before["values"] and after["status"] == before["status"]
    assert identity(thread.state(assistant_id="echo")) == first and thread.state()["values"]["count"] == 5


def test_a_chosen_head_that_is_deleted(http, thread):
    thread.say("echo", "one", "m1")
    [run] = thread.ask("GET", thread.path("/runs"))
    first = identity(thread.state())
    thread.say("echo", "two", "m2", checkpoint_id=thread.before("m1"))
    thread.ask("PATCH", thread.path("/branches"), json={"checkpoint_id": first})
    thread.ask("DELETE", thread.path(f"/runs/{run['run_id']}"), 204)
    assert texts(thread.state()["values"])[0] == "two" == texts(thread.record()["values"])[0]
    assert thread.ask("GET", thread.path("/branches"))["head"] == identity(thread.state())


@pytest.mark.parametrize("body", [{}, {"checkpoint_id": 3}, {"checkpoint_id": None}, {"checkpoint_id": ""}])
def test_choosing_refuses(http, counted, body):
    before = counted.branches()
    refused(http, "PATCH", counted.path("/branches"), 422, "checkpoint_id", json=body)
    assert counted.branches() == before


def test_choosing_refuses_more(http, counted):
    path = counted.path("/branches")
    for more in ({}, {"assistant_id": "echo"}, {"checkpoint_ns": "nowhere"}):
        body = {"checkpoint_id": UNKNOWN, **more}
        assert refused(http, "PATCH", path, 404, json=body) == "Checkpoint not found"
    inner = {"checkpoint_id": UNKNOWN, "checkpoint_ns": "assistant:x|child:y"}
    refused(http, "PATCH", path, 422, "subgraph", json=inner)
    refuses_what_is_not_json(http, "PATCH", path)
    refuses_too_much(http, "PATCH", path)


def test_branches_of_a_subgraph(thread):
    thread.run("nested", input={**human("hi"), "ask": True})
    [task] = thread.state()["tasks"]
    answer = thread.branches(checkpoint_ns=task["checkpoint"]["checkpoint_ns"])
    assert len(answer["branches"]) == 1 and answer["checkpoint_ns"] == task["checkpoint"]["checkpoint_ns"]


# ---- hidden namespaces


def test_relative_namespaces():
    options = ["--namespaces-show=false"]
    with Server(options=options) as server, httpx.Client(base_url=server.url, timeout=60) as http:
        thread = Thread(http)
        thread.run("nested", input={**human("hi"), "ask": True})
        state = thread.state()
        [task] = state["tasks"]
        assert state["checkpoint"]["checkpoint_ns"] == state["parent_checkpoint"]["checkpoint_ns"] == ""
        assert task["checkpoint"]["checkpoint_ns"] == f"child:{task['id']}"
        inner = thread.history(checkpoint=task["checkpoint"])
        assert {each["checkpoint"]["checkpoint_ns"] for each in inner} == {f"child:{task['id']}"}
        assert set(inner[0]["checkpoint"]["checkpoint_map"]) == {"", f"child:{task['id']}"}
        assert thread.ask("GET", thread.path("/branches"))["checkpoint_ns"] == ""
        assert {entry["checkpoint_ns"] for entry in thread.timeline()} == {""}
        made = update(thread, values=human("more"), as_node="before")
        assert made["checkpoint"]["checkpoint_ns"] == "" and texts(thread.state()["values"])[-1] == "more"
        thread.say("echo", "other")
        own = http.get("/assistants/nested").json()["assistant_id"]
        for params in ({"assistant_id": "nested"}, {"checkpoint_ns": f"assistant:{own}"}):
            assert texts(thread.state(**params)["values"])[-1] == "more"
