"""LangGraph's RemoteGraph: a graph of a Heddle server, used like a local one."""

import clients
import pytest
from clients import human
from langgraph.errors import GraphInterrupt
from langgraph.pregel.remote import RemoteException, RemoteGraph
from langgraph.types import Command

NO_STATE = pytest.mark.beyond_peer("takes no boolean for subgraphs, which RemoteGraph sends")


@pytest.fixture
def remote(server):
    clients.record(RemoteGraph)
    return lambda name: RemoteGraph(name, url=server.url, api_key="unused")


@pytest.fixture
def config(http):
    return {"configurable": {"thread_id": http.post("/threads", json={}).json()["thread_id"]}}


def texts(values):
    return [message["content"] for message in values["messages"]]


def test_invoke(remote, config):
    assert texts(remote("echo").invoke(human("hi"), config)) == ["hi", "You said: hi"]
    assert len(remote("echo").invoke(human("more"), config)["messages"]) == 4
    assert texts(remote("echo").invoke(human("alone"))) == ["alone", "You said: alone"]  # without a thread


async def test_ainvoke(remote, config):
    assert texts(await remote("echo").ainvoke(human("hi"), config)) == ["hi", "You said: hi"]


def test_stream(remote, config):
    graph = remote("nap")
    assert list(graph.stream({"ms": 1}, config, stream_mode="updates")) == [
        {"before": {"log": ["before"]}}, {"sleep": {"log": ["slept"]}}, {"after": {"log": ["after"]}},
    ]  # fmt: skip
    both = list(graph.stream({"ms": 1}, config, stream_mode=["values", "updates"]))
    assert [part.event for part in both] == ["values", *["updates", "values"] * 3]
    custom = list(remote("loop").stream({"count": 0}, stream_mode="custom"))
    assert custom == [{"at": number} for number in range(5)]


async def test_astream(remote, config):
    found = [values async for values in remote("nap").astream({"ms": 1}, config, stream_mode="values")]
    assert found[-1] == {"ms": 1, "log": ["before", "slept", "after"]}


def test_messages(remote, config):
    said = list(remote("echo").stream(human("hi"), config, stream_mode="messages"))
    assert "".join(message["content"] for message, _ in said) == "You said: hi"


def test_subgraphs(remote, config):
    found = list(remote("nested").stream(human("hi"), config, stream_mode="updates", subgraphs=True))
    assert [(bool(namespace), next(iter(update))) for namespace, update in found] == [
        (False, "before"), (True, "choose"), (True, "inner"), (False, "child"),
    ]  # fmt: skip
    assert {namespace[0].split(":")[0] for namespace, _ in found if namespace} == {"child"}


def test_errors(remote, config):
    with pytest.raises(RemoteException, match="boom"):
        remote("failing").invoke({"log": []}, config)


@NO_STATE
def test_get_state(remote, config):
    graph = remote("loop")
    graph.invoke({"count": 0}, config)
    snapshot = graph.get_state(config)
    assert snapshot.values["count"] == 5 and snapshot.next == () and snapshot.metadata["step"] == 5
    assert snapshot.config["configurable"]["thread_id"] == config["configurable"]["thread_id"]
    assert snapshot.parent_config["configurable"]["checkpoint_id"] and snapshot.created_at


@NO_STATE
async def test_aget_state(remote, config):
    graph = remote("loop")
    await graph.ainvoke({"count": 0}, config)
    assert (await graph.aget_state(config)).values["count"] == 5


def test_get_state_history(remote, config):
    graph = remote("loop")
    graph.invoke({"count": 0}, config)
    history = list(graph.get_state_history(config))
    assert [snapshot.metadata["step"] for snapshot in history] == [5, 4, 3, 2, 1, 0, -1]
    assert history[-1].parent_config is None
    assert [s.metadata["step"] for s in graph.get_state_history(config, limit=2)] == [5, 4]
    assert [s.metadata["step"] for s in graph.get_state_history(config, filter={"source": "input"})] == [-1]


@pytest.mark.beyond_peer("takes only text as `before`, and no boolean for subgraphs")
def test_old_states(remote, config):
    graph = remote("loop")
    graph.invoke({"count": 0}, config)
    history = list(graph.get_state_history(config))
    assert [s.metadata["step"] for s in graph.get_state_history(config, before=history[4].config)] == [0, -1]
    old = graph.get_state(history[2].config)
    assert old.values == history[2].values and old.next == ("step",)


async def test_aget_state_history(remote, config):
    graph = remote("loop")
    await graph.ainvoke({"count": 0}, config)
    assert len([snapshot async for snapshot in graph.aget_state_history(config)]) == 7


@NO_STATE
def test_update_state(remote, config):
    graph = remote("approval")
    assert graph.invoke(human("hi"), config)["__interrupt__"][0]["value"]["to"] == "hi"
    changed = graph.update_state(config, {"verdict": "by hand"}, as_node="ask")
    assert changed["configurable"]["checkpoint_id"]
    assert graph.get_state(config).next == ("reply",)
    assert texts(graph.invoke(None, config)) == ["hi", "Approved: by hand"]


@NO_STATE
async def test_aupdate_state(remote, config):
    graph = remote("echo")
    await graph.ainvoke(human("hi", id="m1"), config)
    await graph.aupdate_state(config, {"messages": [{"type": "human", "content": "changed", "id": "m1"}]})
    assert texts((await graph.aget_state(config)).values) == ["changed", "You said: hi"]


@NO_STATE
def test_fork_from_an_old_state(remote, config):
    graph = remote("echo")
    graph.invoke(human("one"), config)
    point = graph.get_state(config).config
    graph.invoke(human("two"), config)
    forked = graph.update_state(point, human("other"), as_node="__start__")
    assert texts(graph.invoke(None, forked)) == ["one", "You said: one", "other", "You said: other"]


def test_interrupts(remote, config):
    graph = remote("approval")
    with pytest.raises(GraphInterrupt) as asked:
        inside = {"configurable": {**config["configurable"], "checkpoint_ns": "caller:1"}}  # as a node of a graph
        list(graph.stream(human("hi"), inside))
    [interrupt] = asked.value.args[0]
    assert interrupt.value == {"question": "Shall I answer?", "to": "hi"} and interrupt.id
    values = graph.invoke(Command(resume="yes"), config)
    assert values["verdict"] == "yes" and texts(values) == ["hi", "Approved: yes"]


@NO_STATE
def test_interrupts_in_states(remote, config):
    graph = remote("approval")
    [asked] = graph.invoke(human("hi"), config)["__interrupt__"]
    snapshot = graph.get_state(config)
    assert snapshot.next == ("ask",) and [each.id for each in snapshot.interrupts] == [asked["id"]]
    assert [each.id for each in snapshot.tasks[0].interrupts] == [asked["id"]]


def test_interrupts_at_the_top_do_not_raise(remote, config):
    found = list(remote("approval").stream(human("hi"), config, stream_mode="updates"))
    assert [each["value"]["to"] for each in found[-1]["__interrupt__"]] == ["hi"]


@NO_STATE
def test_interrupts_in_subgraphs(remote, config):
    graph = remote("nested")
    graph.invoke({**human("hi"), "ask": True}, config)
    snapshot = graph.get_state(config, subgraphs=True)
    inner = snapshot.tasks[0].state
    assert inner.next == ("question",) and inner.tasks[0].interrupts[0].value == "inner?"
    assert inner.config["configurable"]["checkpoint_ns"].split("|")[-1].startswith("child:")
    values = graph.invoke(Command(resume="from outside"), config)
    assert texts(values) == ["hi", "outer", "from outside", "inner says hello"]


@pytest.mark.parametrize("opened", [False, True])
def test_get_graph(remote, opened):
    drawn = remote("nested").get_graph(xray=opened)
    assert ("child:inner" if opened else "child") in drawn.nodes
    assert ("__start__", "before") in {(edge.source, edge.target) for edge in drawn.edges}


async def test_aget_graph(remote):
    assert "reply" in (await remote("echo").aget_graph()).nodes


def test_with_config(remote, config):
    graph = remote("settings").with_config({"configurable": {"user": "ada"}})
    assert graph.invoke({"seen": []}, config)["seen"][-1]["user"] == "ada"


def test_it_is_a_node_of_another_graph(remote, config):
    """The outer graph runs here, the inner one on the server, on one thread."""
    from langgraph.graph import END, START, MessagesState, StateGraph

    outer = StateGraph(MessagesState)
    outer.add_node("far", remote("echo"))
    outer.add_edge(START, "far")
    outer.add_edge("far", END)
    values = outer.compile().invoke({"messages": [{"role": "user", "content": "hi"}]})
    assert [message.content for message in values["messages"]] == ["hi", "You said: hi"]
