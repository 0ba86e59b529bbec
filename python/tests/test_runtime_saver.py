"""Graphs give the same states through a worker's connection as on LangGraph's in-memory saver."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest
from graphs import SCRIPTS
from heddle import CanonicalSerializer, HeddleError
from heddle.runtime.link import Link
from heddle.runtime.saver import RuntimeSaver, Scope
from langgraph.checkpoint.base import empty_checkpoint
from langgraph.checkpoint.memory import InMemorySaver
from stub_server import StubServer
from test_graphs import difference, play

CONFIG: Any = {"configurable": {"thread_id": "t", "checkpoint_ns": ""}}


@pytest.fixture
async def server() -> AsyncIterator[StubServer]:
    server = StubServer({})
    server._scopes[1] = "t"
    yield server
    server.close()


@pytest.fixture
async def saver(server: StubServer) -> AsyncIterator[RuntimeSaver]:
    link = Link(server.worker_end, asyncio.get_running_loop(), lambda call: None)
    yield RuntimeSaver(Scope(link, 1, "t"), CanonicalSerializer())
    link.close()


# Sync methods are called on the event loop's own thread here.
@pytest.mark.parametrize("durability", ["async", "exit"])
@pytest.mark.parametrize("is_async", [False, True], ids=["invoke", "ainvoke"])
@pytest.mark.parametrize("name", SCRIPTS)
async def test_same_states(name: str, is_async: bool, durability: str, saver: RuntimeSaver) -> None:
    expected = await play(name, InMemorySaver(), is_async, durability)
    assert difference(await play(name, saver, is_async, durability), expected) is None


async def test_from_other_threads(saver: RuntimeSaver) -> None:
    checkpoint = empty_checkpoint()

    def put_and_get() -> Any:
        stored = saver.put(CONFIG, checkpoint, {"step": 1}, {})
        saver.put_writes(stored, [("a", 1)], "task", "path")
        return saver.get_tuple(CONFIG)

    found = await asyncio.to_thread(put_and_get)
    assert found.checkpoint["id"] == checkpoint["id"]
    assert found.metadata == {"step": 1}
    assert found.pending_writes == [("task", "a", 1)]


async def test_lists_in_pages(saver: RuntimeSaver) -> None:
    ids = []
    config = CONFIG
    for step in range(5):
        checkpoint = empty_checkpoint()
        config = await saver.aput(config, checkpoint, {"step": step}, {})
        ids.insert(0, checkpoint["id"])
    assert [each.checkpoint["id"] async for each in saver.alist(CONFIG)] == ids
    assert [each.checkpoint["id"] for each in saver.list(CONFIG, limit=3)] == ids[:3]
    assert [each.checkpoint["id"] for each in saver.list(CONFIG, limit=0)] == []
    before: Any = {"configurable": {"checkpoint_id": ids[1]}}
    assert [each.checkpoint["id"] for each in saver.list(CONFIG, before=before)] == ids[2:]
    found = [each async for each in saver.alist(CONFIG, filter={"step": 2})]
    assert [each.metadata["step"] for each in found] == [2]


@pytest.mark.parametrize(
    ("code", "name"),
    [("gone", "ECLOSED"), ("conflict", "ECONFLICT"), ("internal", "EIO"), ("odd", "EIO")],
)
async def test_errors(server: StubServer, saver: RuntimeSaver, code: str, name: str) -> None:
    server.fail["put"] = {"type": "E", "message": "no more", "code": code}
    with pytest.raises(HeddleError, match="no more") as caught:
        await saver.aput(CONFIG, empty_checkpoint(), {}, {})
    assert caught.value.name == name
    with pytest.raises(HeddleError, match="no more"):
        saver.put(CONFIG, empty_checkpoint(), {}, {})


async def test_lost_connection_raises(server: StubServer, saver: RuntimeSaver) -> None:
    server.close()
    with pytest.raises(HeddleError, match="closed"):
        await saver.aget_tuple(CONFIG)
    with pytest.raises(HeddleError, match="closed"):
        await asyncio.to_thread(saver.get_tuple, CONFIG)
