"""The effect of a new run on the unfinished runs of its thread."""

import asyncio

import pytest
from clients import collect, refused, until
from langgraph_sdk.errors import APIStatusError, ConflictError, NotFoundError

LONG = {"ms": 600_000}


async def begin(client, thread, **options):
    """Starts a run that has done its first step and sleeps."""
    run = await client.runs.create(thread, "nap", input=LONG, **options)

    async def sleeps():
        state = await client.threads.get_state(thread)
        return state["next"] == ["sleep"] and state["metadata"].get("run_id") == run["run_id"]

    await until(sleeps)
    return run


async def status(client, thread, run):
    return (await client.runs.get(thread, run["run_id"]))["status"]


async def test_reject(client, thread):
    first = await begin(client, thread)
    with pytest.raises(APIStatusError):
        await client.runs.create(thread, "nap", input={"ms": 1}, multitask_strategy="reject")
    assert await status(client, thread, first) == "running"
    assert len(await client.runs.list(thread)) == 1
    await client.runs.cancel(thread, first["run_id"], wait=True)


@pytest.mark.beyond_peer("answers 422")
async def test_reject_is_a_conflict(client, thread):
    first = await begin(client, thread)
    text = "Thread is already running a task. Wait for it to finish or choose a different multitask strategy."
    with pytest.raises(ConflictError, match=text):
        await client.runs.create(thread, "nap", input={"ms": 1}, multitask_strategy="reject")
    for call in (client.runs.create, client.runs.wait):
        with refused(409, text):
            await call(thread, "nap", input={"ms": 1}, multitask_strategy="reject")
    with refused(409, text):
        await collect(client.runs.stream(thread, "nap", input={"ms": 1}, multitask_strategy="reject"))
    await client.runs.cancel(thread, first["run_id"], wait=True)


async def test_enqueue(client, thread):
    first = await client.runs.create(thread, "nap", input={"ms": 400})
    second = await client.runs.create(thread, "nap", input={"ms": 1}, multitask_strategy="enqueue")
    third = await client.runs.create(thread, "nap", input={"ms": 2}, multitask_strategy="enqueue")
    assert second["status"] == third["status"] == "pending"
    await client.runs.join(thread, third["run_id"])
    assert [await status(client, thread, run) for run in (first, second, third)] == ["success"] * 3
    state = await client.threads.get_state(thread)
    assert state["values"] == {"ms": 2, "log": ["before", "slept", "after"] * 3}
    sequence = [
        entry["metadata"]["run_id"]
        for entry in reversed(await client.threads.get_history(thread, limit=100))
        if entry["metadata"]["source"] == "input"
    ]
    assert sequence == [run["run_id"] for run in (first, second, third)]


@pytest.mark.beyond_peer("rejects by default")
async def test_enqueue_is_the_default(client, thread):
    first = await client.runs.create(thread, "nap", input={"ms": 300})
    second = await client.runs.create(thread, "nap", input={"ms": 1})
    await client.runs.join(thread, second["run_id"])
    assert await status(client, thread, first) == "success"


async def test_interrupt(client, thread):
    first = await begin(client, thread)
    second = await client.runs.create(thread, "nap", input={"ms": 1}, multitask_strategy="interrupt")
    values = await client.runs.join(thread, second["run_id"])
    assert values["log"] == ["before", "before", "slept", "after"]  # the first step of the first run is kept
    assert await status(client, thread, first) == "interrupted"
    assert await status(client, thread, second) == "success"


async def test_interrupt_reaches_those_that_wait(client, thread):
    first = await begin(client, thread)
    second = await client.runs.create(thread, "nap", input={"ms": 1}, multitask_strategy="enqueue")
    third = await client.runs.create(thread, "nap", input={"ms": 2}, multitask_strategy="interrupt")
    values = await client.runs.join(thread, third["run_id"])
    assert values["ms"] == 2 and values["log"] == ["before", "before", "slept", "after"]
    assert await status(client, thread, first) == "interrupted"
    assert await status(client, thread, second) == "interrupted"


@pytest.mark.beyond_peer("keeps the run as one that failed")
async def test_rollback(client, thread):
    await client.runs.wait(thread, "nap", input={"ms": 1})
    first = await begin(client, thread)
    second = await client.runs.create(thread, "nap", input={"ms": 1}, multitask_strategy="rollback")
    values = await client.runs.join(thread, second["run_id"])
    assert values["log"] == ["before", "slept", "after"] * 2  # no trace of the first run is left
    with pytest.raises(NotFoundError):
        await client.runs.get(thread, first["run_id"])
    history = await client.threads.get_history(thread, limit=100)
    assert first["run_id"] not in {state["metadata"].get("run_id") for state in history}


async def test_threads_do_not_wait_for_each_other(client):
    threads = [(await client.threads.create())["thread_id"] for _ in range(4)]
    runs = [await client.runs.create(thread, "nap", input=LONG) for thread in threads]

    async def all_run():
        found = [await status(client, thread, run) for thread, run in zip(threads, runs)]
        return found == ["running"] * 4

    await until(all_run)
    await asyncio.gather(*(client.runs.cancel(t, r["run_id"], wait=True) for t, r in zip(threads, runs)))


@pytest.mark.beyond_peer("keeps answers of interrupts apart, but is idle in between")
async def test_the_thread_is_busy_until_all_have_ended(client, thread):
    first = await begin(client, thread)
    last = await client.runs.create(thread, "nap", input={"ms": 1500}, multitask_strategy="enqueue")
    assert (await client.threads.get(thread))["status"] == "busy"
    await client.runs.cancel(thread, first["run_id"], wait=True)
    seen = set()

    async def done():
        thread_status = (await client.threads.get(thread))["status"]
        run_status = await status(client, thread, last)
        if run_status not in ("success",):
            seen.add(thread_status)
        return run_status == "success"

    await until(done)
    assert seen <= {"busy", "idle"}
    assert (await client.threads.get(thread))["status"] == "idle"
