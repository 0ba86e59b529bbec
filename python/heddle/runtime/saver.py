"""The checkpointer of a run: every call goes to the server."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from typing import Any, cast

import orjson
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import (
    ChannelVersions,
    Checkpoint,
    CheckpointMetadata,
    CheckpointTuple,
    get_checkpoint_metadata,
)

from heddle._core import Codec
from heddle._saver import CodecSaver, config_of
from heddle.runtime.link import Answer, Link
from heddle.serializer import CanonicalSerializer

_MOST_BLOBS = 4000  # blobs used of a frame; slightly below the limit


class Scope:
    """The server call of a graph, and its pending requests."""

    __slots__ = ("link", "number", "thread_id", "_open", "_idle", "_keys")

    def __init__(self, link: Link, number: int, thread_id: str) -> None:
        self.link = link
        self.number = number
        self.thread_id = thread_id
        self._open = 0
        self._idle: asyncio.Future[None] | None = None
        self._keys: dict[str, int] = {}

    def next_key(self, place: str) -> str:
        """Names the calls made at a position of the graph, in their order."""
        count = self._keys[place] = self._keys.get(place, 0) + 1
        return f"{place}#{count}"

    def call(self, head: dict[str, Any], blobs: Sequence[bytes] = ()) -> asyncio.Future[Answer]:
        self._open += 1
        return self.link.call(orjson.dumps(head), blobs, None, self._on_end)

    def call_sync(self, head: dict[str, Any], blobs: Sequence[bytes] = ()) -> Answer:
        return self.link.call_sync(orjson.dumps(head), blobs)

    def _on_end(self) -> None:
        self._open -= 1
        if not self._open and self._idle is not None and not self._idle.done():
            self._idle.set_result(None)

    async def settle(self) -> None:
        """Waits until all requests are answered."""
        while self._open:
            self._idle = asyncio.get_running_loop().create_future()
            await self._idle


class RuntimeSaver(CodecSaver):
    """Reads and writes the checkpoints of one run's thread through the server.

    Sync methods may run on any thread, including the event loop's.
    """

    def __init__(self, scope: Scope, serde: CanonicalSerializer) -> None:
        super().__init__(serde)
        self._scope = scope

    # -- writing ---------------------------------------------------------------

    def put(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> RunnableConfig:
        head, blobs = self._put(config, checkpoint, metadata, new_versions)
        self._scope.call_sync(head, blobs)
        return self._config(head["ns"], head["id"])

    async def aput(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> RunnableConfig:
        head, blobs = self._put(config, checkpoint, metadata, new_versions)
        await self._scope.call(head, blobs)
        return self._config(head["ns"], head["id"])

    def put_writes(
        self,
        config: RunnableConfig,
        writes: Sequence[tuple[str, Any]],
        task_id: str,
        task_path: str = "",
    ) -> None:
        self._scope.call_sync(*self._writes(config, writes, task_id, task_path))

    async def aput_writes(
        self,
        config: RunnableConfig,
        writes: Sequence[tuple[str, Any]],
        task_id: str,
        task_path: str = "",
    ) -> None:
        await self._scope.call(*self._writes(config, writes, task_id, task_path))

    def _put(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> tuple[dict[str, Any], list[bytes]]:
        conf = config["configurable"]
        codec = self._codec
        present = checkpoint["channel_values"]
        rest = {key: each for key, each in checkpoint.items() if key != "channel_values"}
        blobs = [
            codec.encode(rest),
            codec.encode(get_checkpoint_metadata(config, metadata)),
        ]
        values = [
            (channel, *_attach(codec.dumps_typed(present[channel]), blobs))
            for channel in new_versions
            if channel in present
        ]
        head = {
            "op": "put",
            "call": self._scope.number,
            "ns": conf.get("checkpoint_ns") or "",
            "id": checkpoint["id"],
            "parent": conf.get("checkpoint_id") or None,
            "checkpoint": {"$blob": 0},
            "metadata": {"$blob": 1},
            "new_versions": new_versions,
            "values": values,
        }
        return head, blobs

    def _writes(
        self,
        config: RunnableConfig,
        writes: Sequence[tuple[str, Any]],
        task_id: str,
        task_path: str,
    ) -> tuple[dict[str, Any], list[bytes]]:
        conf = config["configurable"]
        codec = self._codec
        blobs: list[bytes] = []
        values = [(channel, *_attach(codec.dumps_typed(value), blobs)) for channel, value in writes]
        head = {
            "op": "writes",
            "call": self._scope.number,
            "ns": conf.get("checkpoint_ns") or "",
            "id": str(conf["checkpoint_id"]),
            "task_id": task_id,
            "task_path": task_path,
            "values": values,
        }
        return head, blobs

    # -- reading ---------------------------------------------------------------

    def get_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        return self._one(self._scope.call_sync(self._get(config)))

    async def aget_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        return self._one(await self._scope.call(self._get(config)))

    def list(
        self,
        config: RunnableConfig | None,
        *,
        filter: dict[str, Any] | None = None,
        before: RunnableConfig | None = None,
        limit: int | None = None,
    ) -> Iterator[CheckpointTuple]:
        head: dict[str, Any] | None = self._list(config, filter, before, limit)
        while head is not None:
            answer = self._scope.call_sync(head)
            page = answer.head["tuples"]
            for each in page:
                yield self._tuple(each, answer.blobs)
            head = _next_page(head, answer.head)

    async def alist(
        self,
        config: RunnableConfig | None,
        *,
        filter: dict[str, Any] | None = None,
        before: RunnableConfig | None = None,
        limit: int | None = None,
    ) -> AsyncIterator[CheckpointTuple]:
        head: dict[str, Any] | None = self._list(config, filter, before, limit)
        while head is not None:
            answer = await self._scope.call(head)
            page = answer.head["tuples"]
            for each in page:
                yield self._tuple(each, answer.blobs)
            head = _next_page(head, answer.head)

    def get_delta_channel_history(self, *, config: RunnableConfig, channels: Sequence[str]) -> Mapping[str, Any]:
        if not channels:
            return {}
        answer = self._scope.call_sync(self._history(config, channels))
        return self._histories(answer)

    async def aget_delta_channel_history(self, *, config: RunnableConfig, channels: Sequence[str]) -> Mapping[str, Any]:
        if not channels:
            return {}
        return self._histories(await self._scope.call(self._history(config, channels)))

    def _get(self, config: RunnableConfig) -> dict[str, Any]:
        conf = config["configurable"]
        return {
            "op": "get",
            "call": self._scope.number,
            "ns": conf.get("checkpoint_ns") or "",
            "id": conf.get("checkpoint_id") or "",
        }

    def _list(
        self,
        config: RunnableConfig | None,
        filter: dict[str, Any] | None,
        before: RunnableConfig | None,
        limit: int | None,
    ) -> dict[str, Any] | None:
        if limit is not None and limit <= 0:
            return None
        conf: Mapping[str, Any] = config["configurable"] if config else {}
        bound: Mapping[str, Any] = before["configurable"] if before else {}
        return {
            "op": "list",
            "call": self._scope.number,
            "ns": conf.get("checkpoint_ns"),
            "id": conf.get("checkpoint_id") or "",
            "before": bound.get("checkpoint_id") or "",
            "filter": filter or {},
            "limit": limit,
        }

    def _history(self, config: RunnableConfig, channels: Sequence[str]) -> dict[str, Any]:
        return {
            **self._get(config),
            "op": "history",
            "channels": [*channels],
        }

    def _histories(self, answer: Answer) -> dict[str, Any]:
        loads = self._codec.loads_typed
        blobs = answer.blobs
        found: dict[str, Any] = {}
        for name, history in answer.head["channels"].items():
            # The loop needs (task id, channel, value), as in pending writes.
            entry: dict[str, Any] = {
                "writes": [
                    (task_id, name, loads((kind, _blob(blob, blobs))))
                    for task_id, _path, _idx, kind, blob in history["writes"]
                ]
            }
            if (seed := history.get("seed")) is not None:
                entry["seed"] = loads((seed[0], _blob(seed[1], blobs)))
            found[name] = entry
        return found

    def _one(self, answer: Answer) -> CheckpointTuple | None:
        record = answer.head["tuple"]
        return None if record is None else self._tuple(record, answer.blobs)

    def _tuple(self, record: dict[str, Any], blobs: Sequence[bytes]) -> CheckpointTuple:
        codec = self._codec
        loads = codec.loads_typed
        checkpoint = _text(codec, record["checkpoint"], blobs)
        checkpoint["channel_values"] = {
            channel: loads((kind, _blob(blob, blobs))) for channel, kind, blob in record["values"]
        }
        if sends := record.get("sends"):
            self._add_sends(checkpoint, [loads((each[4], _blob(each[5], blobs))) for each in sends])
        parent = record.get("parent")
        return CheckpointTuple(
            self._config(record["ns"], record["id"]),
            cast(Checkpoint, checkpoint),
            cast(CheckpointMetadata, _text(codec, record["metadata"], blobs)),
            None if parent is None else self._config(record["ns"], parent),
            [
                (task_id, channel, loads((kind, _blob(blob, blobs))))
                for task_id, _path, _idx, channel, kind, blob in record["writes"]
            ],
        )

    def _config(self, ns: str, id: str) -> RunnableConfig:
        return config_of(self._scope.thread_id, ns, id)


def _next_page(head: dict[str, Any], answer: dict[str, Any]) -> dict[str, Any] | None:
    page = answer["tuples"]
    if not answer.get("more") or not page:
        return None
    limit = head["limit"]
    if limit is not None:
        limit -= len(page)
        if limit <= 0:
            return None
    return {**head, "before": page[-1]["id"], "limit": limit}


def _attach(value: tuple[str, bytes], blobs: list[bytes]) -> tuple[str, int | str]:
    """The type, and the index of the blob, or the text when a frame would have too many blobs."""
    kind, data = value
    if len(blobs) >= _MOST_BLOBS and kind in ("hd1", "json"):
        return kind, data.decode()
    blobs.append(data)
    return kind, len(blobs) - 1


def _blob(place: int | str, blobs: Sequence[bytes]) -> bytes:
    return place.encode() if isinstance(place, str) else blobs[place]


def _text(codec: Codec, value: Any, blobs: Sequence[bytes]) -> dict[str, Any]:
    if type(value) is dict and len(value) == 1 and "$blob" in value:
        return cast(dict[str, Any], codec.decode(blobs[value["$blob"]]))
    return cast(dict[str, Any], codec.decode(orjson.dumps(value)))
