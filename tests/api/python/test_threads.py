"""threads.*: records of threads; their states are in test_state.py."""

import asyncio
import uuid

import pytest
from clients import human, texts, until
from langgraph_sdk.errors import ConflictError, NotFoundError, UnprocessableEntityError


async def test_create_gives_an_idle_thread(client):
    made = await client.threads.create(metadata={"a": 1})
    uuid.UUID(made["thread_id"])
    assert made["status"] == "idle" and made["metadata"] == {"a": 1}
    assert not made.get("values") and not made.get("interrupts")
    assert made["created_at"] and made["updated_at"]
    assert await client.threads.get(made["thread_id"]) == made


async def test_create_with_an_id_and_a_graph(client, unknown):
    made = await client.threads.create(thread_id=unknown, graph_id="echo")
    assert made["thread_id"] == unknown and made["metadata"]["graph_id"] == "echo"


async def test_create_twice(client, thread):
    with pytest.raises(ConflictError):
        await client.threads.create(thread_id=thread)
    kept = await client.threads.create(thread_id=thread, if_exists="do_nothing", metadata={"b": 2})
    assert kept["thread_id"] == thread and kept["metadata"] == {}


@pytest.mark.beyond_peer("answers 400")
async def test_create_with_wrong_values(client):
    with pytest.raises(UnprocessableEntityError):
        await client.threads.create(thread_id="not-a-uuid")
    with pytest.raises(UnprocessableEntityError):
        await client.threads.create(if_exists="perhaps")


async def test_create_with_supersteps(client):
    made = await client.threads.create(
        graph_id="echo",
        supersteps=[
            {"updates": [{"values": human("one", id="m1"), "as_node": "__start__"}]},
            {"updates": [{"values": {"messages": [{"type": "ai", "content": "two", "id": "m2"}]}, "as_node": "reply"}]},
        ],
    )
    history = await client.threads.get_history(made["thread_id"])
    assert [texts(state["values"]) for state in history] == [["one", "two"], ["one"]]
    state = await client.threads.get_state(made["thread_id"])
    assert texts(state["values"]) == ["one", "two"] and state["next"] == []
    assert state["metadata"]["source"] == "update"


async def test_get_unknown(client, unknown):
    with pytest.raises(NotFoundError):
        await client.threads.get(unknown)


async def test_update_merges_metadata(client):
    made = await client.threads.create(metadata={"a": 1, "b": 1})
    changed = await client.threads.update(made["thread_id"], metadata={"b": 2, "c": 3})
    assert changed["metadata"] == {"a": 1, "b": 2, "c": 3}
    assert (await client.threads.get(made["thread_id"]))["metadata"] == {"a": 1, "b": 2, "c": 3}


@pytest.mark.beyond_peer("always answers with the thread")
async def test_update_with_a_minimal_answer(client, thread):
    assert await client.threads.update(thread, metadata={"x": 1}, return_minimal=True) is None
    assert (await client.threads.get(thread))["metadata"]["x"] == 1


async def test_update_unknown(client, unknown):
    with pytest.raises(NotFoundError):
        await client.threads.update(unknown, metadata={})


async def test_delete(client, thread):
    await client.runs.wait(thread, "echo", input=human("hi"))
    assert await client.threads.delete(thread) is None
    with pytest.raises(NotFoundError):
        await client.threads.get(thread)
    with pytest.raises(NotFoundError):
        await client.threads.get_state(thread)
    with pytest.raises(NotFoundError):
        await client.threads.delete(thread)


async def test_a_deleted_thread_starts_empty(client, thread):
    await client.runs.wait(thread, "echo", input=human("old"))
    await client.threads.delete(thread)
    await client.threads.create(thread_id=thread)
    assert texts(await client.runs.wait(thread, "echo", input=human("new"))) == ["new", "You said: new"]


@pytest.mark.beyond_peer("deletes the thread under its run")
async def test_delete_cancels_active_runs(client, thread):
    run = await client.runs.create(thread, "nap", input={"ms": 600_000})

    async def running():
        return (await client.runs.get(thread, run["run_id"]))["status"] == "running"

    await until(running)
    await client.threads.delete(thread)
    with pytest.raises(NotFoundError):
        await client.runs.get(thread, run["run_id"])


async def test_copy(client, thread):
    await client.runs.wait(thread, "echo", input=human("hi", id="m1"))
    await client.threads.update(thread, metadata={"colour": "red"})
    copied = await client.threads.copy(thread)
    assert copied["thread_id"] != thread and copied["metadata"]["colour"] == "red"
    ours, theirs = [await client.threads.get_history(each) for each in (thread, copied["thread_id"])]
    assert [state["checkpoint"]["checkpoint_id"] for state in ours] == [
        state["checkpoint"]["checkpoint_id"] for state in theirs
    ]
    assert [state["values"] for state in ours] == [state["values"] for state in theirs]
    assert {state["checkpoint"]["thread_id"] for state in theirs} == {copied["thread_id"]}
    await client.runs.wait(copied["thread_id"], "echo", input=human("again"))
    assert len((await client.threads.get_state(copied["thread_id"]))["values"]["messages"]) == 4
    assert len((await client.threads.get_state(thread))["values"]["messages"]) == 2


async def test_copy_unknown(client, unknown):
    with pytest.raises(ConflictError):
        await client.threads.copy(unknown)


async def test_search_and_count(client):
    owner = {"owner": str(uuid.uuid4())}
    made = [(await client.threads.create(metadata={**owner, "n": number}))["thread_id"] for number in range(3)]
    await client.runs.wait(made[0], "approval", input=human("hi"))
    assert await client.threads.count(metadata=owner) == 3
    found = await client.threads.search(metadata=owner, limit=2)
    assert [each["thread_id"] for each in found] == [made[2], made[1]]  # newest first
    found = await client.threads.search(metadata=owner, limit=2, offset=2)
    assert [each["thread_id"] for each in found] == [made[0]]
    assert [each["thread_id"] for each in await client.threads.search(metadata=owner, status="interrupted")] == [
        made[0]
    ]
    assert await client.threads.count(metadata=owner, status="interrupted") == 1
    assert await client.threads.count(metadata=owner, status="idle") == 2
    assert [each["thread_id"] for each in await client.threads.search(metadata={**owner, "n": 1})] == [made[1]]
    found = await client.threads.search(metadata=owner, sort_by="created_at", sort_order="asc")
    assert [each["thread_id"] for each in found] == made
    found = await client.threads.search(ids=[made[1], made[2]], sort_by="thread_id", sort_order="asc")
    assert [each["thread_id"] for each in found] == sorted(made[1:])


async def test_search_selects(client):
    owner = {"owner": str(uuid.uuid4())}
    made = await client.threads.create(metadata=owner)
    found = await client.threads.search(metadata=owner, select=["thread_id", "status"])
    assert found == [{"thread_id": made["thread_id"], "status": "idle"}]


async def test_search_by_values(client):
    owner = {"owner": str(uuid.uuid4())}
    made = [(await client.threads.create(metadata=owner))["thread_id"] for _ in range(2)]
    for number, thread in enumerate(made):
        await client.runs.wait(thread, "fanout", input={"items": [number + 1]})
    found = await client.threads.search(metadata=owner, values={"total": 4})
    assert [each["thread_id"] for each in found] == [made[1]] and found[0]["values"]["total"] == 4
    assert await client.threads.search(metadata=owner, values={"total": 5}) == []


@pytest.mark.beyond_peer("counts without looking at values")
async def test_count_by_values(client):
    owner = {"owner": str(uuid.uuid4())}
    made = await client.threads.create(metadata=owner)
    await client.runs.wait(made["thread_id"], "fanout", input={"items": [3]})
    assert await client.threads.count(metadata=owner, values={"total": 9}) == 1
    assert await client.threads.count(metadata=owner, values={"total": 8}) == 0


@pytest.mark.beyond_peer("does not extract")
async def test_search_extracts(client):
    owner = {"owner": str(uuid.uuid4())}
    made = await client.threads.create(metadata=owner)
    await client.runs.wait(made["thread_id"], "echo", input=human("hi"))
    found = await client.threads.search(
        metadata=owner,
        select=["thread_id"],
        extract={"last": "values.messages[-1].content", "owner": "metadata.owner", "none": "values.nothing[0]"},
    )
    assert found == [
        {
            "thread_id": made["thread_id"],
            "extracted": {"last": "You said: hi", "owner": owner["owner"], "none": None},
        }
    ]
    with pytest.raises(UnprocessableEntityError):
        await client.threads.search(extract={f"p{n}": "values.messages" for n in range(11)})


@pytest.mark.beyond_peer("answers 400")
async def test_search_with_wrong_values(client):
    for wrong in ({"status": "asleep"}, {"sort_by": "colour"}, {"limit": 0}, {"limit": 1001}, {"offset": -1}):
        with pytest.raises(UnprocessableEntityError):
            await client.threads.search(**wrong)


@pytest.mark.beyond_peer("has no such endpoint")
async def test_prune_deletes(client, unknown):
    made = [(await client.threads.create())["thread_id"] for _ in range(2)]
    assert await client.threads.prune([*made, unknown]) == {"pruned_count": 2}
    for thread in made:
        with pytest.raises(NotFoundError):
            await client.threads.get(thread)


@pytest.mark.beyond_peer("has no such endpoint")
async def test_prune_keeps_the_latest(client, thread):
    await client.runs.wait(thread, "loop", input={"count": 0})
    before = await client.threads.get_state(thread)
    assert len(await client.threads.get_history(thread)) == 7
    assert await client.threads.prune([thread], strategy="keep_latest") == {"pruned_count": 1}
    history = await client.threads.get_history(thread)
    assert len(history) == 1 and history[0]["values"] == before["values"]
    assert (await client.runs.wait(thread, "loop", input={"count": -5}))["count"] == 5


@pytest.mark.beyond_peer("knows no ttl")
async def test_ttl(client):
    made = await client.threads.create(ttl=60)
    same = made["thread_id"]
    shown = (await client.threads.get(same, include=["ttl"]))["ttl"]
    assert shown["ttl"] == 60 and shown["strategy"] == "delete"
    await client.threads.update(same, metadata={}, ttl={"ttl": 90, "strategy": "delete"})
    assert (await client.threads.get(same, include=["ttl"]))["ttl"]["ttl"] == 90
    assert "ttl" not in await client.threads.get(same)


@pytest.mark.beyond_peer("knows no ttl")
async def test_an_expired_thread_is_not_found(client):
    made = await client.threads.create(ttl={"ttl": 0.001, "strategy": "delete"})  # 60 ms

    async def gone():
        try:
            await client.threads.get(made["thread_id"])
        except NotFoundError:
            return True

    await asyncio.sleep(0.1)
    await until(gone)


async def test_a_run_stamps_the_thread(client, thread):
    assistant = await client.assistants.get("echo")
    await client.runs.wait(thread, "echo", input=human("hi"))
    found = await client.threads.get(thread)
    assert found["metadata"]["graph_id"] == "echo"
    assert found["metadata"]["assistant_id"] == assistant["assistant_id"]
    assert texts(found["values"]) == ["hi", "You said: hi"] and found["status"] == "idle"


async def test_status_follows_the_runs(client, thread):
    run = await client.runs.create(thread, "nap", input={"ms": 600_000})
    assert (await client.threads.get(thread))["status"] == "busy"
    await client.runs.cancel(thread, run["run_id"], wait=True)
    run = await client.runs.create(thread, "nap", input={"ms": 1})
    await client.runs.join(thread, run["run_id"])
    assert (await client.threads.get(thread))["status"] == "idle"
    with pytest.raises(Exception, match="boom"):
        await client.runs.wait(thread, "failing", input={"log": []})
    assert (await client.threads.get(thread))["status"] == "error"


async def test_an_interrupted_thread_shows_its_interrupts(client, thread):
    await client.runs.wait(thread, "approval", input=human("hi"))
    found = await client.threads.get(thread)
    state = await client.threads.get_state(thread)
    assert found["status"] == "interrupted"
    assert found["interrupts"] == {task["id"]: task["interrupts"] for task in state["tasks"]}
    await client.runs.wait(thread, "approval", command={"resume": "yes"})
    found = await client.threads.get(thread)
    assert found["status"] == "idle" and not any((found["interrupts"] or {}).values())
