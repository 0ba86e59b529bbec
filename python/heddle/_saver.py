"""Code shared by the savers: the codec of their serializer, versions, copies."""

from __future__ import annotations

import random
from collections.abc import Collection, Sequence
from typing import Any

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.checkpoint.serde.base import SerializerProtocol
from typing_extensions import Self

from heddle._core import Codec
from heddle.serializer import codec_of, with_allowlist

_TASKS = "__pregel_tasks"


class CodecSaver(BaseCheckpointSaver[str]):
    """A saver whose values are written by the C codec. Copies share its store."""

    def __init__(self, serde: SerializerProtocol) -> None:
        super().__init__(serde=serde)
        self._codec_cache = self.serde, codec_of(self.serde)

    def __copy__(self) -> Self:
        clone = type(self).__new__(type(self))
        clone.__dict__.update(self.__dict__)
        return clone

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        return self.__copy__()

    def with_allowlist(self, extra_allowlist: Collection[tuple[str, ...]]) -> Self:
        """A copy that may also revive these classes, if the serializer restricts them."""
        serde = with_allowlist(self.serde, extra_allowlist)
        if serde is None:
            return self
        clone = self.__copy__()
        clone.serde = serde
        return clone

    def get_next_version(self, current: str | int | float | None, channel: None) -> str:
        if current is None:
            counter = 0
        elif isinstance(current, str):
            counter = int(current.split(".", 1)[0])
        else:
            counter = int(current)
        return f"{counter + 1:032}.{random.random():016}"

    @property
    def _codec(self) -> Codec:
        # `serde` is a plain attribute that callers assign, so the codec follows it.
        serde, codec = self._codec_cache
        if serde is not self.serde:
            codec = codec_of(self.serde)
            self._codec_cache = self.serde, codec
        return codec

    def _add_sends(self, checkpoint: dict[str, Any], sends: Sequence[Any]) -> None:
        """Before version 4 the Sends of a step were stored in its parent's writes."""
        versions = checkpoint["channel_versions"]
        checkpoint["channel_values"][_TASKS] = sends
        versions[_TASKS] = max(versions.values()) if versions else self.get_next_version(None, None)


def config_of(thread_id: str, ns: str, id: str) -> RunnableConfig:
    return {
        "configurable": {
            "thread_id": thread_id,
            "checkpoint_ns": ns,
            "checkpoint_id": id,
        }
    }
