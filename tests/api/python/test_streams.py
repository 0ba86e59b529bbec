"""runs.stream, runs.join_stream, threads.join_stream: every mode, and resuming a stream."""

import asyncio

import httpx
import pytest
from clients import collect, human, open_client, opened, texts, until
from gate import Gate
from load import metrics
from server import Server, is_peer

HI = human("hi there", id="m1")


def of(parts, event):
    return [part.data for part in parts if part.event == event]


def names(parts):
    """Returns the names of the events, without `end`, which only Heddle sends."""
    return [part.event for part in parts if part.event != "end"]


async def stream(client, thread, assistant, **options):
    return await collect(client.runs.stream(thread, assistant, **options))


async def open_streams(server, count):
    """Waits until the server has that many: streams of earlier readers may close a moment later."""
    if is_peer():
        return await asyncio.sleep(1)  # the peer does not count them

    async def as_many():
        return (await asyncio.to_thread(metrics, server))["heddle_http_streams"] == count

    await until(as_many)


async def test_values(client, thread):
    parts = await stream(client, thread, "echo", input=HI)
    assert names(parts) == ["metadata", "values", "values"]
    assert [texts(data) for data in of(parts, "values")] == [["hi there"], ["hi there", "You said: hi there"]]
    [metadata] = of(parts, "metadata")
    [run] = await client.runs.list(thread)
    assert metadata["run_id"] == run["run_id"] and metadata["attempt"] == 1


@pytest.mark.beyond_peer("sends no end, and less in metadata")
async def test_metadata_and_end(client, thread):
    assistant = (await client.assistants.get("echo"))["assistant_id"]
    parts = await stream(client, thread, "echo", input=HI)
    [run] = await client.runs.list(thread)
    state = await client.threads.get_state(thread)
    assert parts[0].event == "metadata" and parts[0].data == {
        "run_id": run["run_id"], "attempt": 1, "thread_id": thread, "assistant_id": assistant,
        "checkpoint_ns": f"assistant:{assistant}",
    }  # fmt: skip
    assert parts[-1].event == "end" and parts[-1].data == {
        "run_id": run["run_id"], "checkpoint_id": state["checkpoint"]["checkpoint_id"], "status": "success",
    }  # fmt: skip


async def test_the_run_is_known_at_once(client, thread):
    made = []
    await collect(client.runs.stream(thread, "echo", input=HI, on_run_created=made.append))
    [run] = await client.runs.list(thread)
    assert made == [{"run_id": run["run_id"], "thread_id": thread}]


async def test_updates(client, thread):
    parts = await stream(client, thread, "nap", input={"ms": 1}, stream_mode="updates")
    assert of(parts, "updates") == [
        {"before": {"log": ["before"]}}, {"sleep": {"log": ["slept"]}}, {"after": {"log": ["after"]}},
    ]  # fmt: skip


async def test_several_modes_in_one_stream(client, thread):
    parts = await stream(client, thread, "nap", input={"ms": 1}, stream_mode=["values", "updates"])
    assert names(parts) == ["metadata", "values", *["updates", "values"] * 3]


async def test_custom(client, thread):
    parts = await stream(client, thread, "loop", input={"count": 0}, stream_mode="custom")
    assert of(parts, "custom") == [{"at": number} for number in range(5)]


async def test_messages_tuple(client, thread):
    parts = await stream(client, thread, "echo", input=HI, stream_mode=["messages-tuple", "values"])
    chunks = of(parts, "messages")
    assert "".join(message["content"] for message, _ in chunks) == "You said: hi there"
    assert len(chunks) >= 4  # words, not the whole
    [identity] = {message["id"] for message, _ in chunks}
    assert of(parts, "values")[-1]["messages"][-1]["id"] == identity
    assert {message["type"] for message, _ in chunks} <= {"ai", "AIMessageChunk"}
    metadata = chunks[0][1]
    assert metadata["langgraph_node"] == "reply" and metadata["langgraph_step"] == 1
    assert metadata["langgraph_path"] == ["__pregel_pull", "reply"] and metadata["langgraph_triggers"]
    assert metadata["langgraph_checkpoint_ns"].startswith("reply:")
    assert metadata["thread_id"] == thread and metadata["graph_id"] == "echo" and metadata["run_id"]


async def test_messages(client, thread):
    parts = await stream(client, thread, "echo", input=HI, stream_mode=["messages", "values"])
    identity = of(parts, "values")[-1]["messages"][-1]["id"]
    [metadata] = [data for data in of(parts, "messages/metadata") if identity in data]
    assert metadata[identity]["metadata"]["langgraph_node"] == "reply"
    partials = [data[0] for data in of(parts, "messages/partial") if data[0]["id"] == identity]
    assert [each["content"] for each in partials][:3] == ["You ", "You said: ", "You said: hi "]
    whole = [*partials, *(data[0] for data in of(parts, "messages/complete") if data[0]["id"] == identity)]
    assert whole[-1]["content"] == "You said: hi there"


async def test_tool_calls(client, thread):
    parts = await stream(client, thread, "tools", input=human("sky"), stream_mode=["messages-tuple", "values"])
    asked = [message for message, _ in of(parts, "messages") if message.get("tool_call_chunks")]
    assert [(chunk["name"], chunk["args"], chunk["id"]) for chunk in asked[0]["tool_call_chunks"]] == [
        ("look", '{"at":"sky"}', "call-1")
    ]
    final = of(parts, "values")[-1]["messages"]
    assert [message["type"] for message in final] == ["human", "ai", "tool", "ai"]
    assert final[1]["tool_calls"] == [{"name": "look", "args": {"at": "sky"}, "id": "call-1", "type": "tool_call"}]
    assert final[2]["tool_call_id"] == "call-1" and final[3]["content"] == "It is sunny."


async def test_tasks(client, thread):
    parts = await stream(client, thread, "nap", input={"ms": 1}, stream_mode="tasks")
    tasks = of(parts, "tasks")
    starts = [task for task in tasks if "triggers" in task]
    ends = [task for task in tasks if "triggers" not in task]
    assert [task["name"] for task in starts] == [task["name"] for task in ends] == ["before", "sleep", "after"]
    assert [task["id"] for task in starts] == [task["id"] for task in ends]
    assert starts[0]["input"]["ms"] == 1
    assert ends[1]["result"] in ({"log": ["slept"]}, [["log", ["slept"]]]) and not ends[1]["interrupts"]


async def test_checkpoints(client, thread):
    parts = await stream(client, thread, "nap", input={"ms": 1}, stream_mode="checkpoints")
    found = of(parts, "checkpoints")
    assert [each["metadata"]["step"] for each in found] == [-1, 0, 1, 2, 3]
    assert [each["next"] for each in found] == [["__start__"], ["before"], ["sleep"], ["after"], []]
    assert found[-1]["values"]["log"] == ["before", "slept", "after"]


async def test_debug(client, thread):
    parts = await stream(client, thread, "nap", input={"ms": 1}, stream_mode="debug")
    found = of(parts, "debug")
    assert [each["type"] for each in found] == ["checkpoint", "checkpoint", *["task", "task_result", "checkpoint"] * 3]
    assert [each["step"] for each in found] == [-1, 0, 1, 1, 1, 2, 2, 2, 3, 3, 3]
    last = found[-1]["payload"]
    assert last["values"]["log"] == ["before", "slept", "after"] and last["next"] == []
    assert found[2]["payload"]["name"] == "before" and found[2]["payload"]["id"] == found[3]["payload"]["id"]
    state = await client.threads.get_state(thread)
    assert last["checkpoint"]["checkpoint_id"] == state["checkpoint"]["checkpoint_id"]
    assert last["parent_checkpoint"]["checkpoint_id"] == state["parent_checkpoint"]["checkpoint_id"]


async def test_events(client, thread):
    parts = await stream(client, thread, "echo", input=HI, stream_mode="events")
    found = of(parts, "events")
    assert found[0]["event"] == "on_chain_start" and found[-1]["event"] == "on_chain_end"
    kinds = [each["event"] for each in found]
    assert kinds.count("on_chat_model_start") == kinds.count("on_chat_model_end") == 1
    said = [each["data"]["chunk"] for each in found if each["event"] == "on_chat_model_stream"]
    assert (
        "".join(chunk.get("content", chunk.get("kwargs", {}).get("content")) for chunk in said) == "You said: hi there"
    )
    for each in found:
        assert {"event", "name", "run_id", "data", "metadata", "tags"} <= set(each)
    [reply] = [each for each in found if each["event"] == "on_chain_start" and each["name"] == "reply"]
    assert reply["metadata"]["langgraph_node"] == "reply"


async def test_no_mode_is_values(client, thread):
    parts = await stream(client, thread, "echo", input=HI, stream_mode=[])
    assert names(parts) == ["metadata", "values", "values"]


async def test_interrupts_in_streams(client, thread):
    parts = await stream(client, thread, "approval", input=HI, stream_mode=["values", "updates"])
    [waiting] = [data for data in of(parts, "updates") if "__interrupt__" in data]
    [interrupt] = waiting["__interrupt__"]
    assert interrupt["value"]["question"] == "Shall I answer?" and set(interrupt) == {"id", "value"}
    [shown] = [data for data in of(parts, "values") if "__interrupt__" in data]
    assert shown["__interrupt__"] == [interrupt]
    [task] = (await client.threads.get_state(thread))["tasks"]
    assert [each["id"] for each in task["interrupts"]] == [interrupt["id"]]
    parts = await stream(client, thread, "approval", command={"resume": "ok"}, stream_mode="updates")
    assert of(parts, "updates")[0] == {"ask": {"verdict": "ok"}}
    assert of(parts, "updates")[1]["reply"]["messages"]


async def test_a_breakpoint_is_an_empty_interrupt(client, thread):
    parts = await stream(client, thread, "nap", input={"ms": 1}, interrupt_before=["sleep"], stream_mode="updates")
    assert of(parts, "updates")[-1] == {"__interrupt__": []}


async def test_an_error_ends_the_stream(client, thread):
    parts = await stream(client, thread, "failing", input={"log": []}, stream_mode="updates")
    assert names(parts)[:3] == ["metadata", "updates", "error"]
    [error] = of(parts, "error")
    assert error["error"] == "ValueError" and error["message"] == "boom"


async def test_subgraphs_are_named(client, thread):
    parts = await stream(client, thread, "nested", input=HI, stream_mode=["updates", "values"], stream_subgraphs=True)
    inner = [part for part in parts if part.event.startswith("updates|")]
    assert {part.event.split("|")[1].split(":")[0] for part in inner} == {"child"}
    assert [next(iter(part.data)) for part in inner] == ["choose", "inner"]
    assert [next(iter(data)) for data in of(parts, "updates")] == ["before", "child"]
    [namespace] = {part.event.split("|", 1)[1] for part in parts if "|" in part.event}
    assert any(part.event == f"values|{namespace}" for part in parts)


async def test_subgraphs_are_hidden_by_default(client, thread):
    parts = await stream(client, thread, "nested", input=HI, stream_mode=["updates", "messages-tuple"])
    assert not [part.event for part in parts if "|" in part.event]
    said = [message["content"] for message, metadata in of(parts, "messages") if metadata["langgraph_node"] == "inner"]
    assert "".join(said) == "inner says hello"  # messages of models are streamed nevertheless


async def test_fan_out(client, thread):
    parts = await stream(client, thread, "fanout", input={"items": [1, 2, 3]}, stream_mode=["updates", "tasks"])
    squares = [data["square"]["squares"][0] for data in of(parts, "updates") if "square" in data]
    assert sorted(squares) == [1, 4, 9] and of(parts, "updates")[-1] == {"sum": {"total": 14}}


async def test_stateless_stream(client):
    made = []
    parts = await collect(client.runs.stream(None, "echo", input=HI, on_run_created=made.append))
    assert names(parts) == ["metadata", "values", "values"] and made[0]["run_id"] == parts[0].data["run_id"]


async def test_the_typed_form_of_the_client(client, thread):
    parts = await collect(client.runs.stream(thread, "nested", input=HI, stream_subgraphs=True, version="v2"))
    assert {tuple(part["ns"])[:1] and part["ns"][0].split(":")[0] for part in parts if part["type"] == "values"} == {
        (), "child",
    }  # fmt: skip
    assert parts[0]["type"] == "metadata"


async def test_feedback_keys_do_not_disturb(client, thread):
    parts = await stream(client, thread, "echo", input=HI, feedback_keys=["good"])
    assert "values" in names(parts)


async def started(client, thread, **options):
    run = await client.runs.create(thread, "slow", input=HI, stream_mode=["values", "messages-tuple"], **options)

    async def begun():
        return (await client.runs.get(thread, run["run_id"]))["status"] != "pending"

    await until(begun)
    return run["run_id"]


async def joined(client, server, thread, **options):
    """Returns the events after joining a running run, which blocks until then."""
    with Gate() as gate:
        body = gate.body(stream_mode=["values", "messages-tuple"])
        run = await client.runs.create(thread, body.pop("assistant_id"), **body)

        async def arrived():
            return gate.arrived

        await until(arrived)
        await open_streams(server, 0)
        reading = asyncio.create_task(collect(client.runs.join_stream(thread, run["run_id"], **options)))
        await open_streams(server, 1)
        gate.open()
        return await reading


async def test_join_a_running_stream(client, server, thread):
    parts = await joined(client, server, thread)
    said = "".join(message["content"] for message, _ in of(parts, "messages"))
    assert said == texts(of(parts, "values")[-1])[-1] == "one two three four five six seven eight nine ten"


@pytest.mark.beyond_peer("sends all modes")
async def test_join_with_a_mode(client, server, thread):
    parts = await joined(client, server, thread, stream_mode="values")
    assert set(names(parts)) <= {"metadata", "values"} and of(parts, "values")


async def test_a_resumable_stream_from_the_beginning(client, thread):
    run = await started(client, thread, stream_resumable=True)
    parts = await collect(client.runs.join_stream(thread, run, last_event_id="-1"))
    assert parts[0].event == "metadata"
    assert "".join(message["content"] for message, _ in of(parts, "messages")) == (
        "one two three four five six seven eight nine ten"
    )
    again = await collect(client.runs.join_stream(thread, run, last_event_id="-1"))
    assert again == parts and all(part.id for part in parts)


async def test_a_resumable_stream_from_any_point(client, thread):
    parts = await stream(
        client, thread, "slow", input=HI, stream_mode=["values", "messages-tuple"], stream_resumable=True
    )
    run = parts[0].data["run_id"]
    for number in (0, 3, len(parts) - 2):
        rest = await collect(client.runs.join_stream(thread, run, last_event_id=parts[number].id))
        assert rest == parts[number + 1 :]


async def test_join_after_the_end_without_an_id(client, thread):
    parts = await stream(client, thread, "echo", input=HI, stream_resumable=True)
    assert of(await collect(client.runs.join_stream(thread, parts[0].data["run_id"])), "values") == []


@pytest.mark.beyond_peer("counts each run's events from 0")
async def test_numbers_grow_across_the_runs_of_a_thread(client, thread):
    first = await stream(client, thread, "echo", input=HI, stream_resumable=True)
    second = await stream(client, thread, "echo", input=HI, stream_resumable=True)
    numbers = [int(part.id) for part in [*first, *second]]
    assert numbers == list(range(numbers[0], numbers[0] + len(numbers)))


async def test_a_client_that_leaves_cancels(client, thread):
    source = client.runs.stream(thread, "nap", input={"ms": 600_000}, on_disconnect="cancel", stream_mode="updates")
    async for part in source:
        if part.event == "updates":
            break
    await source.aclose()

    async def cancelled():
        return (await client.runs.list(thread))[0]["status"] == "interrupted"

    await until(cancelled)


async def test_a_client_that_leaves_does_not_stop_it(client, thread):
    source = client.runs.stream(thread, "slow", input=HI, on_disconnect="continue", stream_mode="messages-tuple")
    async for part in source:
        if part.event == "messages":
            break
    await source.aclose()
    [run] = await client.runs.list(thread)
    assert texts(await client.runs.join(thread, run["run_id"]))[-1].endswith("ten")


async def test_a_joined_reader_may_cancel(client, thread):
    run = await client.runs.create(thread, "nap", input={"ms": 600_000}, stream_mode="updates", stream_resumable=True)
    source = client.runs.join_stream(thread, run["run_id"], cancel_on_disconnect=True, last_event_id="-1")
    async for part in source:
        if part.event == "updates":
            break
    await source.aclose()

    async def cancelled():
        return (await client.runs.get(thread, run["run_id"]))["status"] == "interrupted"

    await until(cancelled)


@pytest.mark.beyond_peer("has no such endpoint")
async def test_the_stream_of_a_thread_spans_its_runs(client, thread, server):
    await open_streams(server, 0)
    source = await opened(client.threads.join_stream(thread))
    seen = []

    async def read():
        async for part in source:
            seen.append(part)
            if sum(each.event == "end" for each in seen) == 2:
                break

    reading = asyncio.create_task(read())
    await open_streams(server, 1)  # the reader is connected before the runs: it gets live events only
    for text in ("one", "two"):
        await client.runs.wait(thread, "echo", input=human(text))
    await asyncio.wait_for(reading, 60)
    await source.aclose()
    runs = [run["run_id"] for run in reversed(await client.runs.list(thread))]
    assert [part.data["run_id"] for part in seen if part.event == "metadata"] == runs
    assert [texts(data)[-1] for data in of(seen, "values")] == ["one", "You said: one", "two", "You said: two"]


@pytest.mark.beyond_peer("has no such endpoint")
async def test_the_stream_of_a_thread_from_the_beginning(client, thread):
    first = await stream(client, thread, "echo", input=HI, stream_resumable=True)
    second = await stream(client, thread, "echo", input=HI, stream_resumable=True)
    for start, expected in (("-", [*first, *second]), (first[-1].id, second)):
        source = await opened(client.threads.join_stream(thread, last_event_id=start))
        seen = []
        async for part in source:
            seen.append(part)
            if len(seen) == len(expected):
                break
        await source.aclose()
        assert seen == expected


@pytest.mark.beyond_peer("has no such endpoint")
async def test_the_lifecycle_of_a_thread(client, thread, server):
    await open_streams(server, 0)
    source = await opened(client.threads.join_stream(thread, stream_mode=["lifecycle", "state_update"]))
    seen = []

    async def read():
        async for part in source:
            seen.append(part)
            if len(seen) == 3:
                break

    reading = asyncio.create_task(read())
    await open_streams(server, 1)
    run = await client.runs.create(thread, "echo", input=HI)
    await client.runs.join(thread, run["run_id"])
    await client.threads.update_state(thread, {"messages": []})
    await asyncio.wait_for(reading, 60)
    await source.aclose()
    assert [part.event for part in seen] == ["metadata", "metadata", "state_update"]
    assert seen[0].data["run_id"] == seen[1].data["run_id"] == run["run_id"]
    assert seen[1].data["status"] == "run_done"


@pytest.mark.beyond_peer("has another interval")
@pytest.mark.parametrize("kind", ["async", "sync"])
async def test_heartbeats_are_not_events(kind):
    with Server(options=["--stream-heartbeat", "1"]) as server:
        async with open_client(kind, server.url) as client, httpx.AsyncClient(base_url=server.url) as http:
            thread = (await client.threads.create())["thread_id"]
            run = await client.runs.create(thread, "nap", input={"ms": 600_000}, stream_resumable=True)
            reading = asyncio.create_task(collect(client.runs.join_stream(thread, run["run_id"], last_event_id="-1")))
            path, raw = f"/threads/{thread}/runs/{run['run_id']}/stream", ""
            async with http.stream("GET", path, headers={"last-event-id": "-1"}) as answer:
                async for piece in answer.aiter_text():
                    raw += piece
                    if raw.count(": heartbeat\n") == 3:
                        break
            await client.runs.cancel(thread, run["run_id"])
            parts = await reading
            assert all(part.event and part.data for part in parts), parts
            assert "\n\n: heartbeat\n: heartbeat\n" in raw
