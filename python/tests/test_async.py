"""The async methods: nothing blocks, nothing leaks, nothing is lost."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import sqlite3
import sys
import threading
import time
import weakref
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from heddle import HeddleError, HeddleSaver
from langchain_core.messages import HumanMessage
from langgraph.checkpoint.base import BaseCheckpointSaver
from test_saver import checkpoint, config

TWINS = [
    "get",
    "get_tuple",
    "list",
    "put",
    "put_writes",
    "delete_thread",
    "delete_for_runs",
    "copy_thread",
    "prune",
    "get_delta_channel_history",
    "list_headers",
    "list_threads",
    "thread_usage",
    "compact",
    "check",
    "close",
    "setup",
]


@pytest_asyncio.fixture
async def asaver(url: str) -> AsyncIterator[HeddleSaver]:
    async with HeddleSaver.from_conn_string(url) as saver:
        yield saver


async def aput(saver: HeddleSaver, where: Any, values: dict[str, Any]) -> Any:
    versions = {channel: 1 for channel in values}
    return await saver.aput(where, checkpoint(values, versions), {"step": 1}, versions)


@pytest.mark.parametrize("name", TWINS)
def test_every_method_has_its_twin(name: str) -> None:
    assert hasattr(HeddleSaver, name) and hasattr(HeddleSaver, "a" + name)
    for method in (name, "a" + name):
        own = getattr(HeddleSaver, method)
        assert own is not getattr(BaseCheckpointSaver, method, None) or name == "get"


async def test_all_methods(asaver: HeddleSaver) -> None:
    await asaver.asetup()
    await asaver.setup()
    assert await asaver.aget_tuple(config()) is None
    where = await aput(asaver, config(), {"m": [HumanMessage("x")]})
    await asaver.aput_writes(where, [("m", 1)], "task", "path")
    found = await asaver.aget_tuple(config())
    assert found == asaver.get_tuple(config())
    assert found is not None and found.pending_writes == [("task", "m", 1)]
    assert await asaver.aget(config()) == found.checkpoint
    assert [item async for item in asaver.alist(config())] == [found]
    assert [item async for item in asaver.alist(config(), limit=0)] == []
    assert [item async for item in asaver.alist_headers(None)] == list(asaver.list_headers(None))
    assert [item async for item in asaver.alist_headers(None, limit=0)] == []
    assert [item async for item in asaver.alist_threads()] == list(asaver.list_threads())
    assert await asaver.athread_usage("t") == asaver.thread_usage("t")
    history = await asaver.aget_delta_channel_history(config=where, channels=["m"])
    assert history == asaver.get_delta_channel_history(config=where, channels=["m"])
    assert await asaver.aget_delta_channel_history(config=where, channels=[]) == {}
    await asaver.acopy_thread("t", "u")
    await asaver.aprune(["u"])
    await asaver.adelete_for_runs(["r"])
    await asaver.adelete_thread("u")
    await asaver.acheck()
    await asaver.acompact()
    assert [info.thread_id for info in asaver.list_threads()] == ["t"]
    with pytest.raises(ValueError):
        await asaver.aprune(["t"], strategy="perhaps")
    with pytest.raises(HeddleError):
        await aput(asaver, config("x" * 5000), {})


async def test_200_at_once(asaver: HeddleSaver) -> None:
    async def run(n: int) -> None:
        where = config(f"t{n % 10}", f"ns{n}")
        for step in range(3):
            values = {"m": [HumanMessage(f"{n}-{i}") for i in range(step + 1)]}
            versions = {"m": step + 1}
            where = await asaver.aput(where, checkpoint(values, versions), {"step": step}, versions)
            await asaver.aput_writes(where, [("m", n)], f"task{n}")
        found = await asaver.aget_tuple(where)
        assert found is not None and found.checkpoint["channel_values"] == values
        assert found.pending_writes == [(f"task{n}", "m", n)]

    await asyncio.gather(*(run(n) for n in range(200)))
    listed = [item.config async for item in asaver.alist(None)]
    assert len(listed) == 600
    ids = [item["configurable"]["checkpoint_id"] for item in listed]
    assert ids == sorted(ids, reverse=True)


def commits(wal: bytes) -> int:
    """The number of transactions in SQLite's write-ahead log: their last frames contain the size of
    the file."""
    size, salt = int.from_bytes(wal[8:12], "big"), wal[16:24]
    frames = [wal[start : start + 16] for start in range(32, len(wal), 24 + size)]
    return sum(frame[8:] == salt and any(frame[4:8]) for frame in frames)


async def test_concurrent_puts_are_committed_together(tmp_path: Path) -> None:
    """Group commit: 200 durable puts take far less than 200 transactions."""
    async with HeddleSaver.from_conn_string(tmp_path / "a.db") as saver:
        for n in range(20):
            await aput(saver, config(f"one{n}"), {"a": n})
        before = commits((tmp_path / "a.db-wal").read_bytes())
        assert before >= 20
        with contextlib.closing(sqlite3.connect(tmp_path / "a.db", isolation_level=None)) as other:
            # nothing can be committed until all of them have arrived
            other.execute("BEGIN IMMEDIATE")
            puts = asyncio.gather(*(aput(saver, config(f"many{n}"), {"a": n}) for n in range(200)))
            await asyncio.sleep(0)
            other.execute("ROLLBACK")
        await puts
        assert commits((tmp_path / "a.db-wal").read_bytes()) - before < 100


async def test_the_loop_keeps_turning(asaver: HeddleSaver) -> None:
    ticks = 0

    async def tick() -> None:
        nonlocal ticks
        while True:
            await asyncio.sleep(0)
            ticks += 1

    ticker = asyncio.create_task(tick())
    await asyncio.sleep(0)
    for _n in range(20):
        before = ticks
        await aput(asaver, config(), {"a": "x" * 10000})
        assert ticks > before
    ticker.cancel()


async def test_no_threads_of_python_are_used(asaver: HeddleSaver) -> None:
    before = threading.active_count()
    await asyncio.gather(*(aput(asaver, config(f"t{n}"), {"a": n}) for n in range(50)))
    [item async for item in asaver.alist(None)]
    assert threading.active_count() == before


async def test_values_are_serialized_at_once(asaver: HeddleSaver) -> None:
    values = {"m": ["before"]}
    item = checkpoint(values, {"m": 1})
    pending = asyncio.ensure_future(asaver.aput(config(), item, {}, {"m": 1}))
    await asyncio.sleep(0)  # the call has started, and has not ended
    values["m"].append("after")
    await pending
    found = await asaver.aget(config())
    assert found is not None and found["channel_values"] == {"m": ["before"]}


async def test_cancelled_calls(asaver: HeddleSaver) -> None:
    before = len(gc.get_objects())
    for round in range(20):
        tasks = [asyncio.create_task(aput(asaver, config(f"t{n}", f"ns{round}"), {"a": "x" * 100})) for n in range(20)]
        tasks.append(asyncio.create_task(asaver.aget_tuple(config("t0"))))
        await asyncio.sleep(0)
        for task in tasks[::2]:
            task.cancel()
        results = await asyncio.gather(*tasks, return_exceptions=True)
        assert sum(isinstance(result, asyncio.CancelledError) for result in results) >= 10
        assert not [r for r in results if isinstance(r, Exception)]
    # A cancelled write is stored completely or not at all.
    async for item in asaver.alist(None):
        assert item.checkpoint["channel_values"] == {"a": "x" * 100}
    await asaver.acheck()
    del results, tasks, task
    gc.collect()
    assert len(gc.get_objects()) - before < 500


async def test_cancelled_before_it_begins(asaver: HeddleSaver) -> None:
    task = asyncio.create_task(aput(asaver, config(), {"a": 1}))
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert await asaver.aget_tuple(config()) is None


async def test_a_list_that_is_abandoned(asaver: HeddleSaver) -> None:
    for n in range(100):
        await aput(asaver, config(), {"a": n})
    listed = asaver.alist(config())
    await anext(listed)
    await listed.aclose()  # type: ignore[attr-defined]
    for _ in range(5):
        async for _item in asaver.alist(config()):
            break
    waiting = asyncio.ensure_future(anext(asaver.alist(config())))
    await asyncio.sleep(0)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    assert len([item async for item in asaver.alist(config())]) == 100


async def test_errors_arrive(asaver: HeddleSaver) -> None:
    await aput(asaver, config("a"), {"a": 1})
    await aput(asaver, config("b"), {"a": 1})
    for _ in range(20):
        with pytest.raises(HeddleError, match="thread_id") as refused:
            await aput(asaver, config("x" * 5000), {"a": 1})
        assert refused.value.name == "ELIMIT"
        with pytest.raises(HeddleError) as raised:
            await asaver.acopy_thread("a", "b")
        assert raised.value.name == "EEXISTS"
    await aput(asaver, config(), {"a": 1})


async def test_decoding_errors_arrive(asaver: HeddleSaver) -> None:
    class Failing:
        def dumps_typed(self, obj: Any) -> tuple[str, bytes]:
            return "own", b"x"

        def loads_typed(self, data: Any) -> Any:
            raise LookupError("cannot read")

    asaver.serde = Failing()
    await aput(asaver, config(), {"a": 1})
    with pytest.raises(LookupError, match="cannot read"):
        await asaver.aget_tuple(config())
    with pytest.raises(LookupError):
        [item async for item in asaver.alist(None)]


async def test_closing_waits(url: str) -> None:
    saver = HeddleSaver.from_conn_string(url)
    await saver.__aenter__()
    tasks = [asyncio.create_task(aput(saver, config(f"t{n}"), {"a": n})) for n in range(50)]
    await asyncio.sleep(0)
    await saver.aclose()
    await saver.aclose()
    results = await asyncio.gather(*tasks, return_exceptions=True)
    assert not [result for result in results if isinstance(result, Exception)]
    with pytest.raises(HeddleError, match="closed"):
        await aput(saver, config(), {"a": 1})
    with pytest.raises(HeddleError, match="closed"):
        await saver.aget_tuple(config())


async def test_sync_close_with_pending_calls(url: str) -> None:
    saver = HeddleSaver(url)
    tasks = [asyncio.create_task(aput(saver, config(f"t{n}"), {"a": n})) for n in range(50)]
    await asyncio.sleep(0)
    saver.close()
    results = await asyncio.gather(*tasks, return_exceptions=True)
    assert not [result for result in results if isinstance(result, Exception)]


async def test_opening_happens_off_the_loop(url: str) -> None:
    saver = HeddleSaver.from_conn_string(url)
    assert saver._handle.store is None
    async with saver:
        assert saver._handle.store is not None
    # Without `async with` the first call opens the store; concurrent calls open one store.
    saver = HeddleSaver.from_conn_string(url)
    await asyncio.gather(*(aput(saver, config(f"t{n}"), {"a": n}) for n in range(10)))
    assert len([info async for info in saver.alist_threads()]) == 10
    await saver.aclose()
    never_used = HeddleSaver.from_conn_string(url)
    await never_used.aclose()
    never_used.close()


async def test_opening_fails_clearly() -> None:
    with pytest.raises(ValueError):
        async with HeddleSaver.from_conn_string("nonsense:x"):
            pass
    with pytest.raises(HeddleError):
        await HeddleSaver.from_conn_string("/no/such/dir/a.db").aget_tuple(config())


def test_many_loops(url: str) -> None:
    """One saver for event loops in several threads, each closed with pending calls."""
    saver = HeddleSaver(url)
    failures: list[BaseException] = []

    def work(n: int) -> None:
        async def main() -> None:
            for step in range(5):
                await aput(saver, config(f"t{n}", f"{step}"), {"a": step})
            lost = [asyncio.ensure_future(aput(saver, config(f"u{n}"), {"a": 1})) for _ in range(5)]
            await asyncio.sleep(0)
            del lost

        try:
            asyncio.run(main())
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(n,)) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    for n in range(8):
        assert len(list(saver.list(config(f"t{n}", "4")))) == 1
    saver.check()
    saver.close()


def test_a_loop_that_is_closed_early_leaves_nothing(url: str) -> None:
    saver = HeddleSaver(url)
    loops = []
    for _ in range(20):
        loop = asyncio.new_event_loop()

        async def begin() -> Any:
            return saver.store.put_async(saver._codec, "", "t", "", None, checkpoint({"a": 1}, {"a": 1}), {}, {"a": 1})

        future = loop.run_until_complete(begin())
        time.sleep(0.005)
        loop.close()
        loops.append(weakref.ref(loop))
        del loop, future
    saver.close()
    gc.collect()
    assert [ref for ref in loops if ref() is not None] == []


async def test_nothing_leaks(asaver: HeddleSaver) -> None:
    async def round() -> None:
        where = await aput(asaver, config(), {"a": ["x" * 100]})
        await asaver.aput_writes(where, [("a", 1)], "task")
        await asaver.aget_tuple(where)
        [item async for item in asaver.alist(config(), limit=3)]
        asaver.get_tuple(where)
        list(asaver.list(config(), limit=3))
        asaver.thread_usage("t")
        list(asaver.list_threads())

    for _ in range(10):
        await round()
    gc.collect()
    before = sys.getallocatedblocks()
    for _ in range(100):
        await round()
    gc.collect()
    assert sys.getallocatedblocks() - before < 300
