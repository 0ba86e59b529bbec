"""threads.get_state, update_state, get_history: current and earlier states of a thread."""

import pytest
from clients import human, texts
from langgraph_sdk.errors import ConflictError, NotFoundError


def ids(history):
    return [state["checkpoint"]["checkpoint_id"] for state in history]


async def test_an_empty_thread_has_an_empty_state(client, thread):
    state = await client.threads.get_state(thread)
    assert state["values"] == {} and state["next"] == [] and state["tasks"] == []
    assert state["checkpoint"] is None and state["parent_checkpoint"] is None
    assert await client.threads.get_history(thread) == []


async def test_unknown_threads_have_no_state(client, unknown):
    with pytest.raises(NotFoundError):
        await client.threads.get_state(unknown)
    with pytest.raises(NotFoundError):
        await client.threads.get_history(unknown)
    with pytest.raises(NotFoundError):
        await client.threads.update_state(unknown, {"messages": []})


async def test_state_after_a_run(client, thread):
    assistant = await client.assistants.get("echo")
    await client.runs.wait(thread, "echo", input=human("hi", id="m1"), metadata={"purpose": "test"})
    state = await client.threads.get_state(thread)
    first, second = state["values"]["messages"]
    assert (first["type"], first["content"], first["id"]) == ("human", "hi", "m1")
    assert (second["type"], second["content"]) == ("ai", "You said: hi") and second["id"]
    assert state["next"] == [] and state["tasks"] == [] and state["created_at"]
    assert state["checkpoint"]["thread_id"] == thread and state["checkpoint"]["checkpoint_id"]
    metadata = state["metadata"]
    assert metadata["source"] == "loop" and metadata["step"] == 1 and metadata["thread_id"] == thread
    assert metadata["graph_id"] == "echo" and metadata["assistant_id"] == assistant["assistant_id"]
    assert metadata["purpose"] == "test"
    [run] = await client.runs.list(thread)
    assert metadata["run_id"] == run["run_id"]


@pytest.mark.beyond_peer("has one namespace for all")
async def test_state_names_the_namespace_of_its_agent(client, thread):
    assistant = await client.assistants.get("echo")
    await client.runs.wait(thread, "echo", input=human("hi"))
    state = await client.threads.get_state(thread)
    assert state["checkpoint"]["checkpoint_ns"] == f"assistant:{assistant['assistant_id']}"
    assert state["parent_checkpoint"]["checkpoint_ns"] == f"assistant:{assistant['assistant_id']}"


async def test_history_of_a_run(client, thread):
    await client.runs.wait(thread, "loop", input={"count": 0})
    history = await client.threads.get_history(thread)
    assert [state["metadata"]["step"] for state in history] == [5, 4, 3, 2, 1, 0, -1]
    assert [state["metadata"]["source"] for state in history] == ["loop"] * 6 + ["input"]
    assert [state["values"].get("count", 0) for state in history] == [5, 4, 3, 2, 1, 0, 0]
    assert [state["next"] for state in history] == [[], *[["step"]] * 5, ["__start__"]]
    for newer, older in zip(history, history[1:]):
        assert newer["parent_checkpoint"]["checkpoint_id"] == older["checkpoint"]["checkpoint_id"]
    assert history[-1]["parent_checkpoint"] is None
    assert ids(history) == sorted(ids(history), reverse=True)
    [task] = history[1]["tasks"]
    assert task["name"] == "step" and task["result"] == {"count": 1, "log": ["step 4"]}
    assert task["error"] is None and task["interrupts"] == [] and task["path"] == ["__pregel_pull", "step"]


async def test_history_in_pages(client, thread):
    await client.runs.wait(thread, "loop", input={"count": 0})
    everything = await client.threads.get_history(thread)
    assert await client.threads.get_history(thread, limit=2) == everything[:2]
    second = everything[1]["checkpoint"]
    assert await client.threads.get_history(thread, limit=2, before=second["checkpoint_id"]) == everything[2:4]
    assert await client.threads.get_history(thread, before=ids(everything)[-1]) == []


@pytest.mark.beyond_peer("takes only text as `before`")
async def test_history_before_a_checkpoint_object(client, thread):
    await client.runs.wait(thread, "loop", input={"count": 0})
    everything = await client.threads.get_history(thread)
    assert await client.threads.get_history(thread, before=everything[4]["checkpoint"]) == everything[5:]


async def test_history_by_metadata(client, thread):
    await client.runs.wait(thread, "echo", input=human("one"))
    await client.runs.wait(thread, "echo", input=human("two"), metadata={"turn": "second"})
    runs = await client.runs.list(thread)
    for run in runs:
        found = await client.threads.get_history(thread, metadata={"run_id": run["run_id"]})
        assert {state["metadata"]["run_id"] for state in found} == {run["run_id"]} and len(found) == 3
    assert len(await client.threads.get_history(thread, metadata={"turn": "second"})) == 3
    assert len(await client.threads.get_history(thread, metadata={"source": "input"})) == 2
    assert await client.threads.get_history(thread, metadata={"source": "fork"}) == []


@pytest.mark.beyond_peer("selects nothing from states")
async def test_state_and_history_select(client, thread):
    await client.runs.wait(thread, "fanout", input={"items": [1, 2]})
    state = await client.threads.get_state(thread, select=["values.total", "next"])
    assert state == {"values": {"total": 5}, "next": []}
    history = await client.threads.get_history(thread, limit=1, select=["values", "metadata"])
    assert set(history[0]) == {"values", "metadata"}
    checkpoint = (await client.threads.get_state(thread))["checkpoint"]
    assert await client.threads.get_state(thread, checkpoint=checkpoint, select=["next"]) == {"next": []}


async def test_state_of_an_old_checkpoint(client, thread):
    await client.runs.wait(thread, "loop", input={"count": 0})
    history = await client.threads.get_history(thread)
    for expected in (history[0], history[2], history[-1]):
        found = await client.threads.get_state(thread, checkpoint_id=expected["checkpoint"]["checkpoint_id"])
        assert found["values"] == expected["values"] and found["next"] == expected["next"]
        assert found["checkpoint"] == expected["checkpoint"]
        assert found["parent_checkpoint"] == expected["parent_checkpoint"]


@pytest.mark.beyond_peer("takes no boolean for subgraphs")
async def test_state_by_a_checkpoint_object(client, thread):
    await client.runs.wait(thread, "loop", input={"count": 0})
    expected = (await client.threads.get_history(thread))[2]
    found = await client.threads.get_state(thread, checkpoint=expected["checkpoint"])
    assert found["values"] == expected["values"] and found["checkpoint"] == expected["checkpoint"]
    with pytest.raises(NotFoundError):
        await client.threads.get_state(thread, checkpoint={"checkpoint_id": "1f000000-0000-6000-8000-000000000000"})


async def test_state_of_an_interrupt(client, thread):
    values = await client.runs.wait(thread, "approval", input=human("hi"))
    state = await client.threads.get_state(thread)
    assert state["next"] == ["ask"]
    [task] = state["tasks"]
    assert task["name"] == "ask" and task.get("result") is None
    [interrupt] = task["interrupts"]
    assert interrupt["value"] == {"question": "Shall I answer?", "to": "hi"} and len(interrupt["id"]) == 32
    assert values["__interrupt__"] == [{"id": interrupt["id"], "value": interrupt["value"]}]
    assert (await client.threads.get_history(thread, limit=1))[0]["tasks"][0]["interrupts"] == task["interrupts"]


async def test_state_of_a_failure(client, thread):
    with pytest.raises(Exception, match="boom"):
        await client.runs.wait(thread, "failing", input={"log": []})
    state = await client.threads.get_state(thread)
    assert state["values"] == {"log": ["before"]} and state["next"] == ["break"]
    assert "boom" in state["tasks"][0]["error"]


async def test_update_state_as_a_node(client, thread):
    await client.runs.wait(thread, "approval", input=human("hi"))
    before = await client.threads.get_state(thread)
    answer = await client.threads.update_state(thread, {"verdict": "by hand"}, as_node="ask")
    state = await client.threads.get_state(thread)
    assert answer["checkpoint"]["checkpoint_id"] == state["checkpoint"]["checkpoint_id"]
    assert answer["checkpoint"]["thread_id"] == thread
    assert state["values"]["verdict"] == "by hand" and state["next"] == ["reply"]
    assert state["metadata"]["source"] == "update"
    assert state["metadata"]["step"] == before["metadata"]["step"] + 1
    assert state["parent_checkpoint"]["checkpoint_id"] == before["checkpoint"]["checkpoint_id"]
    assert texts(await client.runs.wait(thread, "approval", input=None)) == ["hi", "Approved: by hand"]


async def test_update_state_goes_through_the_reducer(client, thread):
    await client.runs.wait(thread, "echo", input=human("hi", id="m1"))
    await client.threads.update_state(thread, {"messages": [{"type": "human", "content": "changed", "id": "m1"}]})
    assert texts((await client.threads.get_state(thread))["values"]) == ["changed", "You said: hi"]
    await client.threads.update_state(thread, {"messages": [{"type": "remove", "content": "", "id": "m1"}]})
    assert texts((await client.threads.get_state(thread))["values"]) == ["You said: hi"]


async def test_update_state_makes_a_branch(client, thread):
    await client.runs.wait(thread, "loop", input={"count": 0})
    old = (await client.threads.get_history(thread))[3]
    for point in ({"checkpoint": old["checkpoint"]}, {"checkpoint_id": old["checkpoint"]["checkpoint_id"]}):
        answer = await client.threads.update_state(thread, {"log": ["branch"]}, as_node="step", **point)
        state = await client.threads.get_state(thread, checkpoint_id=answer["checkpoint"]["checkpoint_id"])
        assert state["values"] == {"count": 2, "log": ["step 0", "step 1", "branch"]}
        assert state["parent_checkpoint"]["checkpoint_id"] == old["checkpoint"]["checkpoint_id"]


async def test_update_state_while_busy(client, thread):
    run = await client.runs.create(thread, "nap", input={"ms": 600_000})
    with pytest.raises(ConflictError):
        await client.threads.update_state(thread, {"log": ["x"]})
    await client.runs.cancel(thread, run["run_id"], wait=True)


async def test_update_state_of_a_thread_without_runs(client):
    made = await client.threads.create(graph_id="echo")
    await client.threads.update_state(made["thread_id"], human("first", id="m1"))
    state = await client.threads.get_state(made["thread_id"])
    assert texts(state["values"]) == ["first"]


async def test_state_with_subgraphs(client, thread):
    await client.runs.wait(thread, "nested", input={**human("hi"), "ask": True})
    state = await client.threads.get_state(thread)
    assert state["next"] == ["child"]
    [task] = state["tasks"]
    assert task["checkpoint"]["checkpoint_ns"].split("|")[-1] == f"child:{task['id']}"
    [interrupt] = task["interrupts"]
    assert interrupt["value"] == "inner?"
    inner = (await client.threads.get_state(thread, subgraphs=True))["tasks"][0]["state"]
    assert texts(inner["values"]) == ["hi", "outer"] and inner["next"] == ["question"]
    assert inner["tasks"][0]["interrupts"] == [interrupt]
    assert inner["checkpoint"]["checkpoint_ns"] == task["checkpoint"]["checkpoint_ns"]


@pytest.mark.beyond_peer("loses the namespace on its way to the graph")
async def test_history_of_a_subgraph(client, thread):
    await client.runs.wait(thread, "nested", input={**human("hi"), "ask": True})
    [task] = (await client.threads.get_state(thread))["tasks"]
    history = await client.threads.get_history(thread, checkpoint=task["checkpoint"])
    assert history and {state["checkpoint"]["checkpoint_ns"] for state in history} == {
        task["checkpoint"]["checkpoint_ns"]
    }
    assert history[0]["next"] == ["question"]
