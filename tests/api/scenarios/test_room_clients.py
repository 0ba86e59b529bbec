"""The official Python client on a thread that is a room: nothing changes for it, and the room shows
the turns of its runs."""

import asyncio
import json
import re

import pytest
from clients import collect, human, opened, texts, until
from langgraph.pregel.remote import RemoteGraph
from langgraph.types import Command
from langgraph_sdk import get_client

pytestmark = pytest.mark.beyond_peer("has no rooms")

MODES = ["values", "updates", "messages-tuple"]
ME = {"type": "person", "id": "user", "name": "User"}
CHANGING = re.compile(
    r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}|[0-9a-f]{32}|\d{4}-\d\d-\d\dT[\d:.]+\+00:00"
)


def same(value) -> str:
    """JSON without what differs between two equal runs: ids and times."""
    return CHANGING.sub("?", json.dumps(value, sort_keys=True, default=vars))


def chat(http, thread) -> list[dict]:
    return http.get(f"/threads/{thread}/room/messages").json()


def said(http, thread) -> list[tuple]:
    return [(each["sender"]["type"], each["content"]) for each in chat(http, thread)]


@pytest.fixture
async def room(client, http) -> str:
    """A thread with a chat message that mentions no agent."""
    thread = (await client.threads.create())["thread_id"]
    http.post(f"/threads/{thread}/room/messages", json={"content": "before"}).raise_for_status()
    return thread


# ---- the client gets the same


async def streamed(client, thread, assistant, **options):
    return [(part.event, part.data) for part in await collect(client.runs.stream(thread, assistant, **options))]


async def waited(client, thread, assistant, **options):
    return await client.runs.wait(thread, assistant, **options)


async def created(client, thread, assistant, **options):
    run = await client.runs.create(thread, assistant, **options)
    return [same(run), await client.runs.join(thread, run["run_id"])]


@pytest.mark.parametrize("call", [streamed, waited, created])
@pytest.mark.parametrize("graph", ["echo", "tools", "approval", "failing", "nested"])
async def test_runs_are_those_of_any_other_thread(client, thread, room, call, graph):
    results = []
    for each in thread, room:
        options = {"stream_mode": MODES} if call is streamed else {"raise_error": False} if call is waited else {}
        found = [await call(client, each, graph, input=human("hi", id="m1"), **options)]
        found += [await client.threads.get_state(each), await client.threads.get_history(each)]
        results.append(same(found))
    assert results[0] == results[1]


async def test_a_thread_that_is_a_room_has_the_members_of_others(client, thread, room):
    for each in thread, room:
        await client.runs.wait(each, "echo", input=human("hi"))
    plain, used = [await client.threads.get(each) for each in (thread, room)]
    assert set(plain) <= set(used)
    assert (plain["status"], texts(plain["values"])) == (used["status"], texts(used["values"]))
    found = await client.threads.search(ids=[room])
    assert [each["thread_id"] for each in found] == [room]


async def test_readers_of_the_thread_get_no_events_of_the_room(client, room, http):
    seen = []

    async def read():
        async for part in await opened(client.threads.join_stream(room)):
            seen.append(part.event)
            if part.event == "end":
                return

    reading = asyncio.create_task(read())
    await asyncio.sleep(0.2)
    http.post(f"/threads/{room}/room/messages", json={"content": "more"}).raise_for_status()
    await client.runs.wait(room, "echo", input=human("hi"))
    await asyncio.wait_for(reading, 30)
    assert seen and not [event for event in seen if event and event.startswith("room/")]


async def test_the_client_reads_the_events_of_the_room(client, room, http):
    seen = []

    async def read():
        async for part in await opened(client.threads.join_stream(room, stream_mode="room")):
            seen.append((part.event, part.data))
            if len([event for event, _ in seen if event == "room/message"]) == 2:
                return

    reading = asyncio.create_task(read())
    await asyncio.sleep(0.2)
    await client.runs.wait(room, "echo", input=human("hi"))
    await asyncio.wait_for(reading, 30)
    assert [data["message"]["content"] for event, data in seen if event == "room/message"] == ["hi", "You said: hi"]


# ---- the room gets the turn


@pytest.mark.parametrize("call", [streamed, waited, created])
async def test_the_room_shows_what_was_said_and_by_whom(client, room, http, call):
    await call(client, room, "echo", input=human("hi", id="m1"))
    [run] = await client.runs.list(room)
    _, question, answer = chat(http, room)
    assert (question["id"], question["content"], question["sender"]) == ("m1", "hi", ME)
    assert (answer["content"], answer["reply_to"]) == ("You said: hi", "m1")
    assert (answer["sender"]["type"], answer["sender"]["id"]) == ("agent", run["assistant_id"])
    assert (answer["run_id"], answer["state"]) == (run["run_id"], "ok")


async def test_the_room_shows_each_turn_once(client, room, http):
    for text in "one", "two":
        await client.runs.wait(room, "echo", input=human(text))
    assert said(http, room) == [
        ("person", "before"), ("person", "one"), ("agent", "You said: one"),
        ("person", "two"), ("agent", "You said: two"),
    ]  # fmt: skip


async def test_the_room_shows_no_tool_calls(client, room, http):
    await client.runs.wait(room, "tools", input=human("where?"))
    assert [sender for sender, _ in said(http, room)] == ["person", "person", "agent"]


async def test_a_question_waits_in_the_room_until_the_client_answers(client, room, http):
    await client.runs.wait(room, "approval", input=human("may I?"))
    [question] = [each for each in chat(http, room) if each["state"] == "pending"]
    [interrupt] = (await client.threads.get_state(room))["interrupts"]
    assert interrupt["id"] in json.dumps(question["interrupts"])
    await client.runs.wait(room, "approval", command={"resume": "yes"})
    assert not [each for each in chat(http, room) if each["state"] == "pending"]
    assert (await client.threads.get_state(room))["values"]["verdict"] == "yes"


async def test_a_client_and_the_room_speak_with_the_same_agent(client, room, http):
    await client.runs.wait(room, "echo", input=human("from a client"))
    agent = (await client.runs.list(room))[0]["assistant_id"]
    http.post(f"/threads/{room}/room/messages", json={"content": "from the room", "mentions": [agent]})

    async def answered():
        return len(chat(http, room)) == 5

    await until(answered)
    assert texts((await client.threads.get_state(room))["values"]) == [
        "from a client", "You said: from a client", "User: before", "from the room", "You said: from the room",
    ]  # fmt: skip


async def test_a_run_from_an_earlier_checkpoint_makes_later_turns_stale(client, room, http):
    for text in "one", "two":
        await client.runs.wait(room, "echo", input=human(text, id=text))
    history = await client.threads.get_history(room, limit=100)
    first = [state for state in history if "two" in texts(state["values"])][-1]
    await client.runs.wait(room, "echo", input=human("other", id="other"), checkpoint=first["parent_checkpoint"])
    states = {each["content"]: each["state"] for each in chat(http, room)}
    assert (states["You said: one"], states["two"], states["You said: two"]) == ("ok", "stale", "stale")
    assert (states["other"], states["You said: other"]) == ("ok", "ok")


async def test_remote_graph_in_a_room(server, client, room, http):
    graph = RemoteGraph("approval", url=server.url)
    config = {"configurable": {"thread_id": room}}
    values = await asyncio.to_thread(graph.invoke, human("may I?"), config)
    assert values["__interrupt__"]
    values = await asyncio.to_thread(graph.invoke, Command(resume="yes"), config)
    assert values["verdict"] == "yes"
    assert ("person", "may I?") in said(http, room)


async def test_the_generic_client_reaches_the_endpoints_of_rooms(room, server):
    async with get_client(url=server.url, api_key=None) as plain:
        posted = await plain.http.post(f"/threads/{room}/room/messages", json={"content": "by the client"})
        assert posted["message"]["sender"] == ME
        changed = await plain.http.patch(f"/threads/{room}/room/messages/{posted['message']['id']}",
                                         json={"content": "changed"})  # fmt: skip
        assert changed["message"]["version"] == 2
        found = await plain.http.get(f"/threads/{room}/room/messages")
        assert [each["content"] for each in found] == ["before", "changed"]
        parts = [part async for part in plain.http.stream(
            f"/threads/{room}/room/messages/stream", "POST", json={"content": "hi", "mentions": []})]  # fmt: skip
        assert [part.event for part in parts] == ["room/message"]
