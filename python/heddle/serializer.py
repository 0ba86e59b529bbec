"""The serializer of the canonical encoding."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from langgraph.checkpoint.serde.base import SerializerProtocol, maybe_add_typed_methods
from langgraph.checkpoint.serde.encrypted import EncryptedSerializer
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer

from heddle._classes import CLASSES
from heddle._core import Codec


class CanonicalSerializer(SerializerProtocol):
    """Writes values so that every runtime reads them: messages, `Send`, `Command`, plain data.

    Values that the canonical encoding (docs/encoding.md) cannot express go through ``fallback``, by
    default LangGraph's own `JsonPlusSerializer`, which also reads its earlier output.
    """

    def __init__(self, fallback: SerializerProtocol | None = None) -> None:
        self.fallback = maybe_add_typed_methods(fallback or JsonPlusSerializer())
        self._codec = Codec(CLASSES, self.fallback.dumps_typed, self.fallback.loads_typed, True)

    def dumps_typed(self, obj: Any) -> tuple[str, bytes]:
        return self._codec.dumps_typed(obj)

    def loads_typed(self, data: tuple[str, bytes]) -> Any:
        return self._codec.loads_typed(data)

    def with_msgpack_allowlist(self, extra_allowlist: Collection[tuple[str, ...]]) -> CanonicalSerializer:
        """A serializer whose fallback may revive these classes as well."""
        fallback = with_allowlist(self.fallback, extra_allowlist)
        return self if fallback is None else type(self)(fallback)

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), (self.fallback,)


def with_allowlist(serde: SerializerProtocol, extra: Collection[tuple[str, ...]]) -> SerializerProtocol | None:
    """The serializer with more allowed classes; None when that changes nothing."""
    updated: SerializerProtocol | None = None
    if isinstance(serde, CanonicalSerializer | JsonPlusSerializer):
        updated = serde.with_msgpack_allowlist(extra)
    elif isinstance(serde, EncryptedSerializer):
        inner = with_allowlist(serde.serde, extra)
        updated = None if inner is None else EncryptedSerializer(serde.cipher, inner)
    return None if updated is serde else updated


def codec_of(serde: SerializerProtocol) -> Codec:
    """The codec of the store for a saver with this serializer."""
    if type(serde) is CanonicalSerializer:
        return serde._codec
    return Codec(CLASSES, serde.dumps_typed, serde.loads_typed, False)
