"""The frames of the runtime protocol (docs/runtime.md). No I/O."""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from typing import NamedTuple

CALL, ANSWER, ERROR, PIECE, CANCEL, HOLD, GO = range(1, 8)

_HEADER = struct.Struct("<IBBHII")
_LENGTH = struct.Struct("<I")
_MAX_FRAME = 1 << 30
_MAX_HEAD = 64 << 20
_MAX_BLOBS = 4096
# The header fields between the length and the lengths of the blobs.
_FIXED = _HEADER.size - _LENGTH.size


class ProtocolError(Exception):
    """An invalid frame, or a value too large for one."""


class Frame(NamedTuple):
    kind: int
    number: int
    head: bytes
    blobs: list[bytes]


def pack(kind: int, number: int, head: bytes, blobs: Sequence[bytes] = ()) -> list[bytes]:
    """The bytes of a frame, in parts: large blobs are not copied."""
    count = len(blobs)
    if not count:
        size = _FIXED + len(head)
        return [_HEADER.pack(size, kind, 0, 0, number, len(head)) + head]
    lengths = [len(blob) for blob in blobs]
    size = _FIXED + 4 * count + len(head) + sum(lengths)
    if count > _MAX_BLOBS or size > _MAX_FRAME or len(head) > _MAX_HEAD:
        raise ProtocolError(f"too large for a frame: {count} values, {size} bytes")
    start = _HEADER.pack(size, kind, 0, count, number, len(head))
    return [start, struct.pack(f"<{count}I", *lengths), head, *blobs]


class Reader:
    """Parses incoming bytes into frames."""

    def __init__(self) -> None:
        self._bytes = bytearray()
        self._needed = _LENGTH.size

    def feed(self, data: bytes) -> Iterator[Frame]:
        self._bytes += data
        while len(self._bytes) >= self._needed:
            if self._needed == _LENGTH.size:
                (size,) = _LENGTH.unpack_from(self._bytes)
                if not _FIXED <= size <= _MAX_FRAME:
                    raise ProtocolError(f"invalid frame length: {size} bytes")
                self._needed += size
                continue
            frame = _parse(memoryview(self._bytes)[: self._needed])
            del self._bytes[: self._needed]
            self._needed = _LENGTH.size
            yield frame


def _parse(view: memoryview) -> Frame:
    with view:
        _, kind, zero, count, number, head_size = _HEADER.unpack_from(view)
        start = _HEADER.size + 4 * count
        if (
            zero
            or not CALL <= kind <= GO
            or count > _MAX_BLOBS
            or head_size > _MAX_HEAD
            or start + head_size > len(view)
        ):
            raise ProtocolError("malformed frame")
        lengths = struct.unpack_from(f"<{count}I", view, _HEADER.size)
        if start + head_size + sum(lengths) != len(view):
            raise ProtocolError("frame lengths do not add up")
        head = bytes(view[start : start + head_size])
        position = start + head_size
        blobs = []
        for length in lengths:
            blobs.append(bytes(view[position : position + length]))
            position += length
        return Frame(kind, number, head, blobs)
