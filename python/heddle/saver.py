"""The LangGraph checkpointer."""

from __future__ import annotations

import asyncio
import atexit
import builtins
import os
import re
import threading
import weakref
from collections.abc import AsyncIterator, Generator, Iterator, Mapping, Sequence
from datetime import datetime, timezone
from types import TracebackType
from typing import TYPE_CHECKING, Any, NamedTuple, cast
from urllib.parse import quote

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import (
    ChannelVersions,
    Checkpoint,
    CheckpointMetadata,
    CheckpointTuple,
    get_checkpoint_metadata,
)
from langgraph.checkpoint.serde.base import SerializerProtocol, maybe_add_typed_methods
from typing_extensions import Self

from heddle import _core
from heddle._core import Cursor, Store
from heddle._saver import CodecSaver, config_of
from heddle.serializer import CanonicalSerializer

if TYPE_CHECKING:
    from heddle._core import Row

_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:")
_PAGE = 1000  # threads


class CheckpointHeader(NamedTuple):
    """A checkpoint without its values and writes."""

    config: RunnableConfig
    checkpoint: dict[str, Any]
    metadata: CheckpointMetadata
    parent_config: RunnableConfig | None


class ThreadInfo(NamedTuple):
    """A thread with at least one checkpoint or write."""

    thread_id: str
    created_at: datetime
    updated_at: datetime


class ThreadUsage(NamedTuple):
    """The storage of a thread; ``bytes`` as stored, before the database's own overhead."""

    checkpoints: int
    writes: int
    chunks: int
    bytes: int


class HeddleSaver(CodecSaver):
    """Stores the checkpoints of LangGraph graphs in memory, SQLite or PostgreSQL.

    ``store`` is a URL (``memory:``, ``sqlite:PATH``, ``postgresql://…``; see ``heddle.h`` for
    parameters such as ``?durability=relaxed``), a path, or an open `Store` of another saver. All
    methods exist for sync and async graphs; the async ones block neither the event loop nor a
    Python thread.

    One saver may be used from any number of threads and event loops. Values are serialized before a
    method returns control, so objects may be changed afterwards. A cancelled ``aput`` or
    ``aput_writes`` may still be stored.

    A saver does not survive ``os.fork()``: open one in the child. It can be copied (the copy shares
    the database) but not pickled.

    ``serde`` replaces the canonical encoding for all values. ``principal`` isolates the threads of
    different users: the same thread id under two principals is two threads.
    """

    def __init__(
        self,
        store: str | os.PathLike[str] | Store,
        *,
        serde: SerializerProtocol | None = None,
        principal: str = "",
    ) -> None:
        self._setup(_Handle(store), serde, principal)
        self._handle.open()

    @classmethod
    def from_conn_string(
        cls,
        conn_string: str | os.PathLike[str],
        *,
        serde: SerializerProtocol | None = None,
        principal: str = "",
    ) -> Self:
        """A saver for ``with`` or ``async with``, or for direct use.

        In a running event loop, ``async with`` or the first use opens the database, so that opening
        does not block the loop here.
        """
        saver = cls.__new__(cls)
        saver._setup(_Handle(conn_string), serde, principal)
        if not _is_in_loop():
            saver._handle.open()
        return saver

    def _setup(self, handle: _Handle, serde: SerializerProtocol | None, principal: str) -> None:
        super().__init__(CanonicalSerializer() if serde is None else maybe_add_typed_methods(serde))
        self._handle = handle
        self._principal = principal

    # -- lifetime --------------------------------------------------------------

    def __enter__(self) -> Self:
        self._handle.open()
        return self

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    async def __aenter__(self) -> Self:
        await self._handle.aopen()
        return self

    async def __aexit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self.aclose()

    def close(self) -> None:
        """Waits for running calls and closes. Later calls raise `HeddleError` (``ECLOSED``)."""
        self._handle.close()

    async def aclose(self) -> None:
        await self._handle.aclose()

    def setup(self) -> _Nothing:
        """Does nothing: opening the store creates the tables.

        The result may be awaited, as code written for the async savers does.
        """
        return _Nothing()

    async def asetup(self) -> None:
        """As `setup`."""

    @property
    def store(self) -> Store:
        """The open store, to share with another `HeddleSaver`."""
        return self._handle.open()

    @property
    def principal(self) -> str:
        return self._principal

    def __reduce_ex__(self, protocol: Any) -> Any:
        raise TypeError("a HeddleSaver is an open database and cannot be pickled")

    # -- writing ---------------------------------------------------------------

    def put(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> RunnableConfig:
        conf = config["configurable"]
        thread_id, ns = str(conf["thread_id"]), conf.get("checkpoint_ns") or ""
        self._handle.open().put(
            self._codec,
            self._principal,
            thread_id,
            ns,
            conf.get("checkpoint_id") or None,
            cast(dict[str, Any], checkpoint),
            cast(dict[str, Any], get_checkpoint_metadata(config, metadata)),
            new_versions,
        )
        return config_of(thread_id, ns, checkpoint["id"])

    async def aput(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> RunnableConfig:
        conf = config["configurable"]
        thread_id, ns = str(conf["thread_id"]), conf.get("checkpoint_ns") or ""
        await (self._handle.store or await self._handle.aopen()).put_async(
            self._codec,
            self._principal,
            thread_id,
            ns,
            conf.get("checkpoint_id") or None,
            cast(dict[str, Any], checkpoint),
            cast(dict[str, Any], get_checkpoint_metadata(config, metadata)),
            new_versions,
        )
        return config_of(thread_id, ns, checkpoint["id"])

    def put_writes(
        self,
        config: RunnableConfig,
        writes: Sequence[tuple[str, Any]],
        task_id: str,
        task_path: str = "",
    ) -> None:
        conf = config["configurable"]
        self._handle.open().put_writes(
            self._codec,
            self._principal,
            str(conf["thread_id"]),
            conf.get("checkpoint_ns") or "",
            str(conf["checkpoint_id"]),
            writes,
            task_id,
            task_path,
        )

    async def aput_writes(
        self,
        config: RunnableConfig,
        writes: Sequence[tuple[str, Any]],
        task_id: str,
        task_path: str = "",
    ) -> None:
        conf = config["configurable"]
        await (self._handle.store or await self._handle.aopen()).put_writes_async(
            self._codec,
            self._principal,
            str(conf["thread_id"]),
            conf.get("checkpoint_ns") or "",
            str(conf["checkpoint_id"]),
            writes,
            task_id,
            task_path,
        )

    # -- reading ---------------------------------------------------------------

    def get_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        row = self._handle.open().get(self._codec, self._principal, *_key(config))
        return None if row is None else self._tuple(row)

    async def aget_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        store = await self._handle.aopen()
        row = await store.get_async(self._codec, self._principal, *_key(config))
        return None if row is None else self._tuple(row)

    def list(
        self,
        config: RunnableConfig | None,
        *,
        filter: dict[str, Any] | None = None,
        before: RunnableConfig | None = None,
        limit: int | None = None,
    ) -> Iterator[CheckpointTuple]:
        if limit is not None and limit <= 0:
            return
        cursor = self._cursor(self._handle.open(), config, filter, before, limit)
        for row in _rows(cursor):
            yield self._tuple(row)

    async def alist(
        self,
        config: RunnableConfig | None,
        *,
        filter: dict[str, Any] | None = None,
        before: RunnableConfig | None = None,
        limit: int | None = None,
    ) -> AsyncIterator[CheckpointTuple]:
        if limit is not None and limit <= 0:
            return
        store = await self._handle.aopen()
        cursor = self._cursor(store, config, filter, before, limit)
        async for row in _arows(cursor):
            yield self._tuple(row)

    def list_headers(
        self,
        config: RunnableConfig | None,
        *,
        filter: dict[str, Any] | None = None,
        before: RunnableConfig | None = None,
        limit: int | None = None,
    ) -> Iterator[CheckpointHeader]:
        """As `list`, but reads no values and writes: ids, versions and metadata only."""
        if limit is not None and limit <= 0:
            return
        store = self._handle.open()
        for row in _rows(self._cursor(store, config, filter, before, limit, True)):
            yield _header(row)

    async def alist_headers(
        self,
        config: RunnableConfig | None,
        *,
        filter: dict[str, Any] | None = None,
        before: RunnableConfig | None = None,
        limit: int | None = None,
    ) -> AsyncIterator[CheckpointHeader]:
        """As `list_headers`."""
        if limit is not None and limit <= 0:
            return
        store = await self._handle.aopen()
        cursor = self._cursor(store, config, filter, before, limit, True)
        async for row in _arows(cursor):
            yield _header(row)

    def get_delta_channel_history(self, *, config: RunnableConfig, channels: Sequence[str]) -> Mapping[str, Any]:
        if not channels:
            return {}
        return self._handle.open().delta_history(self._codec, self._principal, *_key(config), channels)

    async def aget_delta_channel_history(self, *, config: RunnableConfig, channels: Sequence[str]) -> Mapping[str, Any]:
        if not channels:
            return {}
        store = await self._handle.aopen()
        return await store.delta_history_async(self._codec, self._principal, *_key(config), channels)

    # -- threads and retention -------------------------------------------------

    def delete_thread(self, thread_id: str) -> None:
        self._handle.open().delete_thread(self._principal, str(thread_id))

    async def adelete_thread(self, thread_id: str) -> None:
        store = await self._handle.aopen()
        await store.delete_thread_async(self._principal, str(thread_id))

    def delete_for_runs(self, run_ids: Sequence[str]) -> None:
        self._handle.open().delete_runs(self._principal, _strings(run_ids))

    async def adelete_for_runs(self, run_ids: Sequence[str]) -> None:
        store = await self._handle.aopen()
        await store.delete_runs_async(self._principal, _strings(run_ids))

    def copy_thread(self, source_thread_id: str, target_thread_id: str) -> None:
        self._handle.open().copy_thread(self._principal, str(source_thread_id), str(target_thread_id))

    async def acopy_thread(self, source_thread_id: str, target_thread_id: str) -> None:
        store = await self._handle.aopen()
        await store.copy_thread_async(self._principal, str(source_thread_id), str(target_thread_id))

    def prune(self, thread_ids: Sequence[str], *, strategy: str = "keep_latest") -> None:
        keep = _keeps_latest(strategy)
        self._handle.open().prune(self._principal, _strings(thread_ids), keep)

    async def aprune(self, thread_ids: Sequence[str], *, strategy: str = "keep_latest") -> None:
        keep = _keeps_latest(strategy)
        store = await self._handle.aopen()
        await store.prune_async(self._principal, _strings(thread_ids), keep)

    def list_threads(self, *, after: str = "") -> Iterator[ThreadInfo]:
        """The threads in order of their ids, behind the id ``after``."""
        store = self._handle.open()
        while rows := store.threads(self._principal, after, _PAGE):
            yield from map(_thread_info, rows)
            after = rows[-1][0]

    async def alist_threads(self, *, after: str = "") -> AsyncIterator[ThreadInfo]:
        """As `list_threads`."""
        store = await self._handle.aopen()
        while rows := await store.threads_async(self._principal, after, _PAGE):
            for row in rows:
                yield _thread_info(row)
            after = rows[-1][0]

    def thread_usage(self, thread_id: str) -> ThreadUsage:
        """The storage of the thread; all zero if it does not exist."""
        store = self._handle.open()
        return ThreadUsage(*store.usage(self._principal, str(thread_id)))

    async def athread_usage(self, thread_id: str) -> ThreadUsage:
        """As `thread_usage`."""
        store = await self._handle.aopen()
        return ThreadUsage(*await store.usage_async(self._principal, str(thread_id)))

    def compact(self) -> None:
        """Returns free space of the database file to the file system. May take long."""
        self._handle.open().compact()

    async def acompact(self) -> None:
        """As `compact`."""
        await (await self._handle.aopen()).compact_async()

    def check(self) -> None:
        """Reads everything; raises `HeddleError` (``ECORRUPT``) at the first damage."""
        self._handle.open().check()

    async def acheck(self) -> None:
        """As `check`."""
        await (await self._handle.aopen()).check_async()

    # -- helpers ---------------------------------------------------------------

    def _cursor(
        self,
        store: Store,
        config: RunnableConfig | None,
        filter: dict[str, Any] | None,
        before: RunnableConfig | None,
        limit: int | None,
        headers: bool = False,
    ) -> Cursor:
        conf: Mapping[str, Any] = config["configurable"] if config else {}
        limits: Mapping[str, Any] = before["configurable"] if before else {}
        return store.list(
            self._codec,
            self._principal,
            str(conf["thread_id"]) if config else None,
            conf.get("checkpoint_ns"),
            conf.get("checkpoint_id") or None,
            limits.get("checkpoint_id") or None,
            filter,
            -1 if limit is None else limit,
            headers,
        )

    def _tuple(self, row: Row) -> CheckpointTuple:
        thread_id, ns, id, parent, checkpoint, metadata, writes, sends = row
        if sends:
            self._add_sends(checkpoint, sends)
        return CheckpointTuple(
            config_of(thread_id, ns, id),
            cast(Checkpoint, checkpoint),
            cast(CheckpointMetadata, metadata),
            None if parent is None else config_of(thread_id, ns, parent),
            writes,
        )


class _Handle:
    """The store of a saver and of its copies; opened once, on first use."""

    def __init__(self, store: str | os.PathLike[str] | Store) -> None:
        self.store: Store | None = store if isinstance(store, Store) else None
        self._url = "" if isinstance(store, Store) else _url(store)
        self._lock = threading.Lock()

    def open(self) -> Store:
        if self.store is not None:
            return self.store
        with self._lock:
            if self.store is None:
                self.store = _remember(_core.open(self._url))
            return self.store

    async def aopen(self) -> Store:
        if self.store is not None:
            return self.store
        store = await _core.open_async(self._url)
        with self._lock:
            if self.store is None:
                self.store = _remember(store)
                return store
        # Another thread opened it first.
        await store.close_async()
        return self.store

    def close(self) -> None:
        if self.store is not None:
            self.store.close()

    async def aclose(self) -> None:
        if self.store is not None:
            await self.store.close_async()


class _Nothing:
    """An awaitable None."""

    def __await__(self) -> Generator[Any, None, None]:
        yield from ()


_stores: weakref.WeakSet[Store] = weakref.WeakSet()


def _remember(store: Store) -> Store:
    _stores.add(store)
    return store


@atexit.register
def _close_all() -> None:
    # The threads of a store must end before the interpreter does.
    for store in tuple(_stores):
        store.close()
    _core.wait_closed()


def _is_in_loop() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


def _url(store: str | os.PathLike[str]) -> str:
    if isinstance(store, str) and _SCHEME.match(store):
        return store
    # A path, as the stock savers take it; no character is special.
    path = os.fspath(store)
    if path == ":memory:":
        return "sqlite::memory:"
    return "sqlite://" + quote(os.fsencode(os.path.abspath(path)))


def _key(config: RunnableConfig) -> tuple[str, str, str | None]:
    conf = config["configurable"]
    return (
        str(conf["thread_id"]),
        conf.get("checkpoint_ns") or "",
        conf.get("checkpoint_id") or None,
    )


def _rows(cursor: Cursor) -> Iterator[Row]:
    try:
        while rows := cursor.page():
            yield from rows
    finally:
        cursor.close()


async def _arows(cursor: Cursor) -> AsyncIterator[Row]:
    try:
        while (page := cursor.page_async()) is not None:
            for row in await page:
                yield row
    finally:
        cursor.close()


def _header(row: Row) -> CheckpointHeader:
    thread_id, ns, id, parent, checkpoint, metadata, _, _ = row
    return CheckpointHeader(
        config_of(thread_id, ns, id),
        checkpoint,
        cast(CheckpointMetadata, metadata),
        None if parent is None else config_of(thread_id, ns, parent),
    )


def _thread_info(row: tuple[str, int, int]) -> ThreadInfo:
    id, created, updated = row
    return ThreadInfo(id, _moment(created), _moment(updated))


def _moment(microseconds: int) -> datetime:
    seconds, rest = divmod(microseconds, 1_000_000)
    return datetime.fromtimestamp(seconds, timezone.utc).replace(microsecond=rest)


def _strings(ids: Sequence[str]) -> builtins.list[str]:
    if isinstance(ids, str | bytes):
        raise TypeError("expected a list of ids, not one id")
    return [str(id) for id in ids]


def _keeps_latest(strategy: str) -> bool:
    if strategy not in ("keep_latest", "delete"):
        raise ValueError(f"unknown strategy {strategy!r}: use keep_latest or delete")
    return strategy == "keep_latest"
