"""The root namespace that a run names: never with a bar, and "" as an agent's line of its own."""

import httpx
import pytest
from plain import Thread, human, identity, texts
from server import Server
from table import refused

pytestmark = pytest.mark.beyond_peer("has one namespace for all")

BAR = "config.configurable.checkpoint_ns: the root namespace of a run must not contain"
EMPTY = {"configurable": {"checkpoint_ns": ""}}


@pytest.fixture
def thread(http):
    return Thread(http)


@pytest.fixture
def hidden():
    """A client of a server that hides roots."""
    with Server(options=["--no-namespaces-show"]) as server, httpx.Client(base_url=server.url, timeout=60) as http:
        yield http


def namespaces(states):
    return {state["checkpoint"]["checkpoint_ns"] for state in states}


def agents(thread):
    return {agent["checkpoint_ns"]: agent for agent in thread.ask("GET", thread.path("/agents"))}


def own_root(http, graph):
    return f"assistant:{http.get(f'/assistants/{graph}').json()['assistant_id']}"


# ---- the bar


@pytest.mark.parametrize("ns", ["a|b", "|", "a|", "|a", "assistant:x|node:1"])
def test_a_root_with_a_bar_is_refused_by_all_ways_to_create_runs(http, thread, ns):
    body = {"assistant_id": "echo", "input": human("hi"), "config": {"configurable": {"checkpoint_ns": ns}}}
    for path in ("/runs", "/runs/stream", "/runs/wait"):
        refused(http, "POST", path, 422, BAR, json=body)
        refused(http, "POST", thread.path(path), 422, BAR, json=body)
    refused(http, "POST", "/runs/batch", 422, BAR, json=[{**body, "config": {}}, body])
    for path in ("/runs/crons", thread.path("/runs/crons")):
        refused(http, "POST", path, 422, BAR, json={**body, "schedule": "0 0 1 1 *"})
    assert thread.ask("GET", thread.path("/runs")) == []


@pytest.mark.parametrize("ns", [1, True, ["a"], {}])
def test_a_root_is_a_string(http, thread, ns):
    body = {"assistant_id": "echo", "input": human("hi"), "config": {"configurable": {"checkpoint_ns": ns}}}
    refused(http, "POST", thread.path("/runs/wait"), 422, "checkpoint_ns: expected a string", json=body)


def test_a_cron_is_not_changed_to_a_root_with_a_bar(http):
    body = {"assistant_id": "echo", "input": human("hi"), "schedule": "0 0 1 1 *"}
    cron = http.post("/runs/crons", json={**body, "config": {"configurable": {"checkpoint_ns": "a"}}}).json()
    change = {"config": {"configurable": {"checkpoint_ns": "a|b"}}}
    refused(http, "PATCH", f"/runs/crons/{cron['cron_id']}", 422, BAR, json=change)
    http.delete(f"/runs/crons/{cron['cron_id']}")


def test_a_bar_is_refused_also_where_roots_are_hidden(hidden):
    body = {"assistant_id": "echo", "input": human("hi"), "config": {"configurable": {"checkpoint_ns": "a|b"}}}
    refused(hidden, "POST", "/runs/wait", 422, BAR, json=body)


def test_states_of_subgraphs_are_still_read_by_their_namespace(thread):
    thread.run("nested", input={**human("hi"), "ask": True}, config={"configurable": {"checkpoint_ns": "team"}})
    [task] = thread.state()["tasks"]
    assert task["checkpoint"]["checkpoint_ns"] == f"team|child:{task['id']}"
    assert namespaces(thread.history(checkpoint=task["checkpoint"])) == {f"team|child:{task['id']}"}


# ---- the empty root where roots are shown


def test_the_empty_root_is_a_line_of_its_own(http, thread):
    own = own_root(http, "echo")
    thread.say("echo", "own")
    assert texts(thread.say("echo", "empty", config=EMPTY)) == ["empty", "You said: empty"]
    assert texts(thread.say("echo", "again", config=EMPTY))[::2] == ["empty", "again"]
    assert texts(thread.say("echo", "more"))[::2] == ["own", "more"]
    assert texts(thread.state(checkpoint_ns="")["values"])[::2] == ["empty", "again"]
    assert texts(thread.state(assistant_id="echo", checkpoint_ns="")["values"])[::2] == ["own", "more"]
    assert texts(thread.state(checkpoint_ns=own)["values"])[::2] == ["own", "more"]
    for body in ({"checkpoint_ns": ""}, {"checkpoint": {"checkpoint_ns": ""}}):
        assert namespaces(thread.history(**body)) == {""}
        assert texts(thread.ask("POST", thread.path("/state/checkpoint"), json=body)["values"])[0] == "empty"
    assert namespaces(thread.history()) == {own} == namespaces(thread.history(checkpoint_ns=None))
    runs = thread.ask("GET", thread.path("/runs"))
    assert [run["kwargs"]["config"]["configurable"]["checkpoint_ns"] for run in runs] == [own, "", "", own]
    found = agents(thread)
    assert list(found) == [own, ""] and found[""]["graph_id"] == "echo" and found[""]["checkpoints"] == 6
    assert {(entry["checkpoint_ns"], entry["message"]["content"]) for entry in thread.timeline()} >= {
        ("", "empty"), ("", "again"), (own, "own"), (own, "more"),
    }  # fmt: skip
    assert len(thread.timeline()) == 8


def test_the_latest_run_may_be_in_the_empty_root(http, thread):
    thread.say("echo", "own")
    thread.say("echo", "empty", "m1", config=EMPTY)
    assert texts(thread.state()["values"])[0] == "empty" == texts(thread.record()["values"])[0]
    assert namespaces(thread.history()) == {""}
    origins = thread.ask("GET", thread.path("/messages"))
    assert origins["checkpoint_ns"] == "" and len(origins["messages"]) == 2
    [found] = [each for each in http.post("/threads/search", json={"ids": [thread.id]}).json()]
    assert texts(found["values"])[0] == "empty"


def test_a_thread_with_only_the_empty_root(thread):
    [first, *_] = thread.stream("echo", input=human("hi"), config=EMPTY)
    assert first[1]["checkpoint_ns"] == ""
    assert list(agents(thread)) == [""] and thread.branches()["checkpoint_ns"] == ""
    assert texts(thread.state()["values"]) == ["hi", "You said: hi"]
    # A run that names nothing has its assistant's line.
    assert texts(thread.say("echo", "own"))[::2] == ["own"]


def test_the_head_that_a_client_displays_is_sent_back(thread):
    thread.say("echo", "own")
    thread.say("echo", "empty", config=EMPTY)
    shown = thread.state()["checkpoint"]
    assert shown["checkpoint_ns"] == ""
    assert texts(thread.say("echo", "next", checkpoint=shown))[::2] == ["empty", "next"]
    # The line that the run names wins; the checkpoint is one of another line.
    config = {"configurable": {"checkpoint_ns": "team"}}
    assert texts(thread.say("echo", "team", checkpoint=shown, config=config))[::2] == ["team"]
    other = thread.state(assistant_id="echo")["checkpoint"]
    assert texts(thread.say("echo", "last", checkpoint=other, config=EMPTY))[::2] == ["empty", "next", "last"]
    thread.ask("POST", thread.path("/state"), json={"values": human("put"), "checkpoint": shown, "as_node": "reply"})
    assert texts(thread.state(checkpoint_ns="")["values"])[-1] == "put"


def test_without_such_a_line_an_empty_namespace_is_the_default(http, thread):
    own = own_root(http, "echo")
    thread.say("echo", "one")
    shown = {**thread.state()["checkpoint"], "checkpoint_ns": ""}
    assert texts(thread.say("echo", "two", checkpoint=shown))[::2] == ["one", "two"]
    assert namespaces([thread.state(checkpoint_ns="")]) == {own} == namespaces(thread.history(checkpoint=shown))
    assert list(agents(thread)) == [own]


def test_branches_of_the_empty_root(thread):
    thread.say("echo", "own")
    thread.say("echo", "one", "m1", config=EMPTY)
    thread.say("echo", "two", "m2", config=EMPTY)
    before = thread.before("m2", checkpoint_ns="")
    checkpoint = {"checkpoint_ns": "", "checkpoint_id": before}
    thread.say("echo", "other", checkpoint=checkpoint, config=EMPTY)
    tree = thread.branches(checkpoint_ns="")
    assert tree["checkpoint_ns"] == "" and len(tree["branches"]) == 3  # the trunk is one too
    [old] = [branch for branch in tree["branches"] if not branch["current"]]
    body = {"checkpoint_ns": "", "checkpoint_id": old["head_checkpoint_id"]}
    assert thread.ask("PATCH", thread.path("/branches"), json=body)["head"] == old["head_checkpoint_id"]
    assert texts(thread.say("echo", "on", config=EMPTY))[::2] == ["one", "two", "on"]
    branches = thread.ask("GET", thread.path("/branches"), params={"checkpoint_ns": ""})["branches"]
    [gone] = [branch for branch in branches if not branch["current"]]
    path = thread.path(f"/branches/{gone['branch_id']}")
    thread.ask("DELETE", path, 204, params={"checkpoint_ns": ""})
    assert len(thread.branches(checkpoint_ns="")["branches"]) == 1
    assert texts(thread.state(assistant_id="echo")["values"])[::2] == ["own"]


def test_subgraphs_of_the_empty_root(http, thread):
    team = {"configurable": {"checkpoint_ns": "team:1"}}
    thread.say("echo", "team", config=team)
    thread.run("nested", input={**human("hi"), "ask": True}, config=EMPTY)
    state = thread.state()
    [task] = state["tasks"]
    inner = f"child:{task['id']}"
    assert task["checkpoint"]["checkpoint_ns"] == inner
    assert list(agents(thread)) == ["team:1", ""]  # a subgraph is not an agent
    assert namespaces(thread.history(checkpoint_ns=inner)) == {inner}
    below = thread.ask("POST", thread.path("/state/checkpoint"), json={"checkpoint": task["checkpoint"]})
    assert below["checkpoint"]["checkpoint_map"][""] == identity(state) and below["next"]
    assert thread.branches(checkpoint_ns=inner)["checkpoint_ns"] == inner
    assert {entry["checkpoint_ns"] for entry in thread.timeline()} <= {"team:1", ""}
    # A run from there starts at the root's checkpoint, in the same line.
    thread.run("nested", input=None, checkpoint=below["checkpoint"])
    assert thread.record()["status"] == "interrupted" and namespaces([thread.state()]) == {""}
    assert list(agents(thread)) == ["team:1", ""]


def test_the_line_of_a_copy(http, thread):
    thread.say("echo", "own")
    thread.say("echo", "empty", config=EMPTY)
    copy = Thread(http)
    copy.id = thread.ask("POST", thread.path("/copy"))["thread_id"]
    assert texts(copy.state()["values"])[0] == "empty" and sorted(agents(copy)) == sorted(agents(thread))
    assert texts(copy.say("echo", "more", config=EMPTY))[::2] == ["empty", "more"]
    assert texts(copy.state(assistant_id="echo")["values"])[::2] == ["own"]


def test_runs_of_both_lines_are_removed_separately(thread):
    thread.say("echo", "own")
    thread.say("echo", "empty", config=EMPTY)
    [latest, _] = thread.ask("GET", thread.path("/runs"))
    thread.ask("DELETE", thread.path(f"/runs/{latest['run_id']}"), 204)
    assert texts(thread.state(assistant_id="echo")["values"]) == ["own", "You said: own"]


def test_an_assistant_does_not_choose_the_root(http, thread):
    body = {"graph_id": "echo", "config": {"configurable": {"checkpoint_ns": "mine"}}}
    made = http.post("/assistants", json=body).json()["assistant_id"]
    thread.say(made, "hi", config=EMPTY)
    assert list(agents(thread)) == [""]
    http.delete(f"/assistants/{made}")


# ---- where roots are hidden


def test_where_roots_are_hidden_an_empty_namespace_is_the_own_line(hidden):
    thread = Thread(hidden)
    thread.say("echo", "one", config=EMPTY)
    shown = thread.state()["checkpoint"]
    assert shown["checkpoint_ns"] == ""
    assert texts(thread.say("echo", "two", checkpoint=shown, config=EMPTY))[::2] == ["one", "two"]
    assert texts(thread.say("echo", "three", checkpoint=thread.state()["checkpoint"]))[::2] == ["one", "two", "three"]
    own = own_root(hidden, "echo")
    for params in ({"checkpoint_ns": ""}, {"checkpoint_ns": own}, {"assistant_id": "echo"}):
        assert texts(thread.state(**params)["values"])[::2] == ["one", "two", "three"]
    [agent] = thread.ask("GET", thread.path("/agents"))
    assert agent["checkpoint_ns"] == "" and own.endswith(agent["assistant_id"])
    assert len(thread.timeline()) == 6 and thread.branches()["checkpoint_ns"] == ""
    copy = Thread(hidden)
    copy.id = thread.ask("POST", thread.path("/copy"))["thread_id"]
    assert texts(copy.say("echo", "four", config=EMPTY))[::2] == ["one", "two", "three", "four"]
