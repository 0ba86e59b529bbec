"""Six graphs and some more through the SDK: the same results as in process, with the in-memory
saver."""

from __future__ import annotations

import asyncio
import importlib
import json
import sys
from pathlib import Path

import pytest
from heddle.runtime.render import render
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.store.memory import InMemoryStore
from langgraph.types import Command
from langgraph_sdk import get_client
from programs import wait_for

PROJECT = Path(__file__).parent / "project"
MODES = ["values", "updates", "custom"]
IDS = {"id", "checkpoint_ns", "langgraph_checkpoint_ns", "run_id", "thread_id", "task_id", "interrupt_id"}


@pytest.fixture(scope="module")
def server(project_module):
    return project_module(folder=PROJECT)


@pytest.fixture
async def client(server):
    async with get_client(url=server.url, timeout=120) as client:
        yield client


def local(name: str):
    """The same graph in this process."""
    if str(PROJECT) not in sys.path:
        sys.path.insert(0, str(PROJECT))
    module = importlib.import_module(name)
    graph = getattr(module, "graph", None) or getattr(module, "workflow", None) or module.builder.compile()
    return graph.copy({"checkpointer": InMemorySaver(), "store": InMemoryStore()})


def plain(value):
    """As JSON, without the ids that differ from run to run."""
    return strip(json.loads(render(value)))


def strip(value):
    if isinstance(value, dict):
        return {name: strip(each) for name, each in value.items() if name not in IDS}
    return [strip(each) for each in value] if isinstance(value, list) else value


def in_order(events):
    """Parallel tasks end in any order."""
    return sorted(json.dumps(strip(event), sort_keys=True) for event in events)


INPUTS = {
    "chat": [{"messages": [{"role": "user", "content": f"turn {i}"}]} for i in range(3)],
    "react": [{"messages": [{"role": "user", "content": "add(2, 3) multiply(4, 5)"}]}],
    "sends": [{"words": ["a", "bc", "def", "ghij"]}],
    "nested": [{"ask": True}, Command(resume="gently"), {"ask": False}],
    "questions": [{"log": ["in"]}, Command(resume="Ann"), Command(resume=44)],
    "slow": [{"seconds": 0}],
    "functional": [[1, 2, 3], Command(resume=10), [4], Command(resume=1)],
}


@pytest.mark.parametrize("name", INPUTS)
async def test_same_as_in_process(client, name):
    graph = local(name)
    config = {"configurable": {"thread_id": "t"}}
    thread = (await client.threads.create())["thread_id"]
    for step in INPUTS[name]:
        expected = {mode: [] for mode in MODES}
        async for mode, chunk in graph.astream(step, config, stream_mode=MODES, output_keys=graph.output_channels):
            expected[mode].append(json.loads(render(chunk)))
        given = {"command": {"resume": step.resume}} if isinstance(step, Command) else {"input": step}
        events = [event async for event in client.runs.stream(thread, name, stream_mode=MODES, **given)]
        for mode in MODES:
            found = [event.data for event in events if event.event == mode]
            assert in_order(found) == in_order(expected[mode]), (name, step, mode)
        assert not [event for event in events if event.event == "error"]
        await same_state(client, thread, graph, config)
    await same_history(client, thread, graph, config)


async def same_state(client, thread, graph, config):
    found = await client.threads.get_state(thread, subgraphs=True)
    wanted = await graph.aget_state(config, subgraphs=True)
    compare(found, wanted)
    status = "interrupted" if wanted.next else "idle"
    assert (await client.threads.get(thread))["status"] == status


def compare(found, wanted):
    assert strip(found["values"]) == plain(wanted.values)
    assert found["next"] == list(wanted.next)
    assert [each["value"] for each in found["interrupts"]] == [each.value for each in wanted.interrupts]
    assert [task["name"] for task in found["tasks"]] == [task.name for task in wanted.tasks]
    for task, other in zip(found["tasks"], wanted.tasks, strict=True):
        assert [each["value"] for each in task["interrupts"]] == [each.value for each in other.interrupts]
        if other.state is not None and hasattr(other.state, "values"):
            compare(task["state"], other.state)
    for key in ("source", "step"):
        assert found["metadata"][key] == wanted.metadata[key]


async def same_history(client, thread, graph, config):
    found = await client.threads.get_history(thread, limit=100)
    wanted = [state async for state in graph.aget_state_history(config)]
    assert len(found) == len(wanted)
    for one, other in zip(found, wanted, strict=True):
        assert strip(one["values"]) == plain(other.values)
        assert one["next"] == list(other.next)
        assert (one["metadata"]["source"], one["metadata"]["step"]) == (
            other.metadata["source"],
            other.metadata["step"],
        )


async def test_wait_and_output(client):
    thread = (await client.threads.create())["thread_id"]
    said = {"messages": [{"role": "user", "content": "add(20, 22)"}]}
    values = await client.runs.wait(thread, "react", input=said)
    assert [message["type"] for message in values["messages"]] == ["human", "ai", "tool", "ai"]
    assert values["messages"][-1]["content"] == "The result is 42."
    assert strip(values) == strip((await client.threads.get_state(thread))["values"])
    values = await client.runs.wait(None, "sends", input={"words": ["x"]})
    assert values["total"] == 3


async def test_message_modes(client):
    said = {"messages": [{"role": "user", "content": "one two"}]}
    expected = "You said: one two (message 1)"
    thread = (await client.threads.create())["thread_id"]
    chunks = []
    async for event in client.runs.stream(thread, "chat", input=said, stream_mode=["messages-tuple"]):
        if event.event == "messages":
            chunks.append(event.data)
    text = "".join(chunk["content"] for chunk, _ in chunks if chunk["type"] == "AIMessageChunk")
    assert text == expected and len(chunks) > 3
    assert chunks[0][1]["langgraph_node"] == "agent" and chunks[0][1]["thread_id"] == thread
    thread = (await client.threads.create())["thread_id"]
    partials = []
    async for event in client.runs.stream(thread, "chat", input=said, stream_mode="messages"):
        if event.event == "messages/partial":
            partials.append(event.data[0]["content"])
    assert partials[-1] == expected and all(expected.startswith(each) for each in partials)
    state = await client.threads.get_state(thread)
    assert state["values"]["messages"][-1]["content"] == expected


async def test_all_modes(client):
    thread = (await client.threads.create())["thread_id"]
    modes = ["values", "updates", "messages-tuple", "custom", "tasks", "checkpoints", "debug", "events"]
    said = {"messages": [{"role": "user", "content": "add(1, 2)"}]}
    events = [event async for event in client.runs.stream(thread, "react", input=said, stream_mode=modes)]
    kinds = {event.event for event in events}
    assert {"metadata", "values", "updates", "messages", "tasks", "checkpoints", "debug", "events"} <= kinds
    assert "error" not in kinds
    named = {event.data["event"] for event in events if event.event == "events"}
    assert {"on_chat_model_stream", "on_tool_start", "on_tool_end", "on_chain_end"} <= named
    steps = [event.data["type"] for event in events if event.event == "debug"]
    assert {"checkpoint", "task", "task_result"} == set(steps)
    results = [event.data for event in events if event.event == "tasks" and "result" in event.data]
    assert [result["name"] for result in results] == ["agent", "tools", "agent"]


async def test_subgraph_streams(client):
    thread = (await client.threads.create())["thread_id"]
    stream = client.runs.stream(thread, "nested", input={"ask": False}, stream_mode=["updates"], stream_subgraphs=True)
    names = [event.event async for event in stream]
    places = [[part.partition(":")[0] for part in name.split("|")] for name in names if name.startswith("updates")]
    assert ["updates", "middle", "inner"] in places and ["updates", "middle"] in places and ["updates"] in places


async def test_cancel(server, client):
    thread = (await client.threads.create())["thread_id"]
    run = await client.runs.create(thread, "slow", input={}, stream_mode=["custom"])
    # The checkpoint before the node may exist before the node has started.
    wait_for(lambda: "slow: waits until it is cancelled" in server.log.read_text(), what="the node to wait")
    wait_for(lambda: server.state(thread)["next"] == ["wait"], what="its checkpoint")
    await client.runs.cancel(thread, run["run_id"], wait=True)
    assert (await client.runs.get(thread, run["run_id"]))["status"] == "interrupted"
    state = await client.threads.get_state(thread)
    assert state["values"]["log"] == ["begun"] and state["next"] == ["wait"]
    wait_for(lambda: "the wait was cancelled" in server.log.read_text(), what="the node to be told")
    values = await client.runs.wait(thread, "slow", input={"seconds": 0})
    assert values["log"] == ["begun", "begun", "waited"]


async def test_failure(server, client):
    thread = (await client.threads.create())["thread_id"]
    events = [event async for event in client.runs.stream(thread, "failing", input={"log": ["in"]})]
    errors = [event.data for event in events if event.event == "error"]
    assert [(error["error"], error["message"]) for error in errors] == [("ValueError", "this always fails")]
    assert (await client.threads.get(thread))["status"] == "error"
    state = await client.threads.get_state(thread)
    assert state["values"] == {"log": ["in", "good"]} and state["next"] == ["fail"]
    wait_for(lambda: "failing.py" in server.log.read_text(), what="the traceback in the log")


async def test_update_and_branch(client):
    thread = (await client.threads.create())["thread_id"]
    await client.runs.wait(thread, "questions", input={"log": ["in"]})
    await client.threads.update_state(thread, {"name": "Bob", "age": 3, "log": ["told"]}, as_node="ask")
    state = await client.threads.get_state(thread)
    assert state["next"] == ["done"] and state["values"]["name"] == "Bob"
    values = await client.runs.wait(thread, "questions", input=None)
    assert values["log"] == ["in", "told", "done"]
    history = await client.threads.get_history(thread)
    first = next(each for each in history if each["next"] == ["ask"])
    await client.runs.wait(thread, "questions", input=None, checkpoint_id=first["checkpoint"]["checkpoint_id"])
    state = await client.threads.get_state(thread)
    assert state["next"] == ["ask"] and state["interrupts"][0]["value"] == "What is your name?"


async def standing(client, thread) -> tuple:
    """Status and interrupts of the thread, which must match its state."""
    found, state = await client.threads.get(thread), await client.threads.get_state(thread)
    assert found["interrupts"] == {task["id"]: task["interrupts"] for task in state["tasks"] if task["interrupts"]}
    return found["status"], state["next"], len(found["interrupts"])


async def test_status_and_interrupts_follow_from_a_change(client):
    thread = (await client.threads.create())["thread_id"]
    await client.runs.wait(thread, "questions", input={"log": ["in"]})
    assert await standing(client, thread) == ("interrupted", ["ask"], 1)
    copied = (await client.threads.copy(thread))["thread_id"]
    assert await standing(client, copied) == ("interrupted", ["ask"], 1)
    history = await client.threads.get_history(copied)
    assert {state["metadata"]["thread_id"] for state in history} == {copied}
    await client.threads.update_state(thread, {"log": ["more"]}, as_node="__start__")
    assert await standing(client, thread) == ("interrupted", ["ask"], 0)
    await client.threads.update_state(thread, {"name": "Bob", "age": 3}, as_node="ask")
    assert await standing(client, thread) == ("interrupted", ["done"], 0)
    await client.threads.update_state(thread, {"log": ["done"]}, as_node="done")
    assert await standing(client, thread) == ("idle", [], 0)


async def test_status_follows_from_supersteps(client):
    steps = [{"updates": [{"values": {"log": ["in"]}, "as_node": "__start__"}]}]
    thread = await client.threads.create(graph_id="questions", supersteps=steps)
    assert await standing(client, thread["thread_id"]) == ("interrupted", ["ask"], 0)


async def test_breakpoints(client):
    thread = (await client.threads.create())["thread_id"]
    values = await client.runs.wait(thread, "sends", input={"words": ["a"]}, interrupt_before=["gather"])
    assert "total" not in values or values["total"] is None
    state = await client.threads.get_state(thread)
    assert state["next"] == ["gather"]
    assert (await client.threads.get(thread))["status"] == "interrupted"
    values = await client.runs.wait(thread, "sends", input=None)
    assert values["total"] == 3


@pytest.mark.parametrize("durability", ["sync", "async", "exit"])
async def test_durability(client, durability):
    thread = (await client.threads.create())["thread_id"]
    await client.runs.wait(thread, "sends", input={"words": ["a"]}, durability=durability)
    history = await client.threads.get_history(thread)
    assert len(history) == (1 if durability == "exit" else 4)
    assert history[0]["values"]["total"] == 3


async def test_factories(client):
    config = {"configurable": {"tone": "warm"}}
    values = await client.runs.wait(None, "factory", input={"open": False}, config=config)
    assert values["greeting"] == "a warm hello"
    assert (await client.runs.wait(None, "session", input={"greeting": ""}))["open"] is True


@pytest.mark.parametrize("command", [{}, {"resume": None}, {"resume": None, "update": None, "goto": []}])
async def test_empty_command(client, command):
    thread = (await client.threads.create())["thread_id"]
    asked = await client.runs.wait(thread, "questions", input={"log": ["in"]})
    again = await client.runs.wait(thread, "questions", command=command)
    assert again["__interrupt__"] == asked["__interrupt__"]
    values = await client.runs.wait(thread, "questions", command={"resume": "Ann"})
    assert values["__interrupt__"] != asked["__interrupt__"]


async def test_context(client):
    assert (await client.runs.wait(None, "context", input={"item": "tea"}))["price"] == "3 EUR"
    values = await client.runs.wait(None, "context", input={"item": "cake"}, context={"currency": "USD", "factor": 3})
    assert values["price"] == "15 USD"
    config = {"configurable": {"currency": "CHF", "other": 1}}  # of clients without context support
    assert (await client.runs.wait(None, "context", input={"item": "tea"}, config=config))["price"] == "3 CHF"
    values = await client.runs.wait(None, "context", input={"item": "tea"}, config=config, context={"factor": 2})
    assert values["price"] == "6 EUR"
    assistant = await client.assistants.create("context", context={"currency": "JPY", "factor": 100})
    values = await client.runs.wait(None, assistant["assistant_id"], input={"item": "tea"})
    assert values["price"] == "300 JPY"


async def test_store(client):
    for fact in ("one", "two"):
        thread = (await client.threads.create())["thread_id"]
        values = await client.runs.wait(thread, "memory", input={"fact": fact})
    assert values["known"] == ["one", "two"]
    item = await client.store.get_item(["facts", "all"], "one")
    assert item["value"] == {"text": "one"}


async def test_descriptions_of_assistants(client):
    found = await client.assistants.search(graph_id="nested")
    assistant = found[0]["assistant_id"]
    drawn = await client.assistants.get_graph(assistant, xray=True)
    assert "middle:inner:step" in [node["id"] for node in drawn["nodes"]]
    schemas = await client.assistants.get_schemas(assistant)
    assert schemas["input_schema"]["properties"].keys() == {"ask", "trail"}
    subgraphs = await client.assistants.get_subgraphs(assistant, recurse=True)
    assert [*subgraphs] == ["middle", "middle|inner"]
    assert "input_schema" in subgraphs["middle"]
    described = await client.assistants.search(graph_id="sends")
    assert described[0]["description"] == "Parallel work"


async def test_many_at_once(client):
    async def turn(i):
        thread = (await client.threads.create())["thread_id"]
        said = {"messages": [{"role": "user", "content": f"number {i}"}]}
        return (await client.runs.wait(thread, "chat", input=said))["messages"][-1]["content"]

    answers = await asyncio.gather(*(turn(i) for i in range(30)))
    assert answers == [f"You said: number {i} (message 1)" for i in range(30)]
