"""The connection to the server: calls in both directions.

Owns the socket instead of a transport, so that a synchronous call made on the
event loop's own thread (a sync graph inside an async node) can wait for its
answer without the loop.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import select
import socket
import threading
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import orjson

from heddle._errors import HeddleError
from heddle.runtime import frames
from heddle.runtime.frames import Frame

_READ = 256 << 10
_FULL = 4 << 20  # bytes that wait to be written before pieces have to wait as well

_CODES = {
    "not_found": -2,
    "conflict": -3,
    "invalid": -4,
    "limit": -5,
    "internal": -6,
    "busy": -10,
    "unavailable": -11,
    "gone": -14,
}


class Answer(NamedTuple):
    head: dict[str, Any]
    blobs: list[bytes]


class ServerError(HeddleError):
    """The server could not do what the worker asked for."""

    def __init__(self, message: str, code: int = 0, type: str = "") -> None:
        super().__init__(message, code)
        self.type = type


class Call:
    """Something that the server asked for. `cancel` is set by whoever works on it."""

    __slots__ = ("number", "head", "blobs", "cancel", "flow", "is_heard", "_link")

    def __init__(self, link: Link, frame: Frame, head: dict[str, Any]) -> None:
        self.number = frame.number
        self.head = head
        self.blobs = frame.blobs
        self.cancel: Callable[[], object] | None = None
        self.flow: asyncio.Event | None = None  # cleared while the server holds
        self.is_heard = not head.get("quiet")  # somebody wants pieces
        self._link = link

    def member(self, name: str) -> Any:
        """A member of the head that may be in a blob instead."""
        value = self.head.get(name)
        if type(value) is dict and len(value) == 1 and "$blob" in value:
            return orjson.loads(self.blobs[value["$blob"]])
        return value

    def piece(self, head: bytes, blobs: Sequence[bytes] = ()) -> None:
        self._link.send(frames.PIECE, self.number, head, blobs)

    def must_wait(self) -> bool:
        flow = self.flow
        return (flow is not None and not flow.is_set()) or self._link.is_full

    async def wait(self) -> None:
        """Until the server takes pieces again."""
        if self.flow is not None:
            await self.flow.wait()
        await self._link.drained()

    def hold(self, is_held: bool) -> None:
        if self.flow is None:
            self.flow = asyncio.Event()
        if is_held:
            self.flow.clear()
        else:
            self.is_heard = True
            self.flow.set()


_Future = asyncio.Future[Answer] | concurrent.futures.Future[Answer]
_OnPiece = Callable[[dict[str, Any], list[bytes]], None] | None
_OnEnd = Callable[[], None] | None


class _Waiting:
    __slots__ = ("future", "on_piece", "on_end")

    def __init__(self, future: _Future, on_piece: _OnPiece, on_end: _OnEnd) -> None:
        self.future = future
        self.on_piece = on_piece
        self.on_end = on_end  # called when the reply is there, wanted or not


class Link:
    """One connection. All methods but `call_sync` are for the loop's thread."""

    def __init__(
        self,
        sock: socket.socket,
        loop: asyncio.AbstractEventLoop,
        on_call: Callable[[Call], None],
    ) -> None:
        sock.setblocking(False)
        self._socket = sock
        self._loop = loop
        self._thread = threading.get_ident()
        self._on_call = on_call
        self._reader = frames.Reader()
        self._out: list[bytes] = []
        self._rest: memoryview | None = None
        self._queued = 0
        self._flush_is_due = False
        self._drain: asyncio.Event = asyncio.Event()
        self._drain.set()
        self._empty: asyncio.Future[None] | None = None
        self._last = 0
        self._waiting: dict[int, _Waiting] = {}
        self._calls: dict[int, Call] = {}
        self.closed: asyncio.Future[None] = loop.create_future()
        loop.add_reader(sock, self._on_readable)

    # -- writing ---------------------------------------------------------------

    @property
    def is_full(self) -> bool:
        return self._queued > _FULL

    async def drained(self) -> None:
        await self._drain.wait()

    async def flushed(self) -> None:
        """Until everything has left."""
        while self._queued and not self.closed.done():
            self._empty = self._loop.create_future()
            await self._empty

    def send(
        self, kind: int, number: int, head: bytes, blobs: Sequence[bytes] = ()
    ) -> None:
        """Frames of one turn of the loop leave in one write."""
        if self.closed.done():
            return
        parts = frames.pack(kind, number, head, blobs)
        self._out += parts
        for part in parts:
            self._queued += len(part)
        if self._queued > _FULL:
            self._drain.clear()
        if not self._flush_is_due:
            self._flush_is_due = True
            self._loop.call_soon(self._flush)

    def _flush(self) -> None:
        self._flush_is_due = False
        if self._rest is None and not self.closed.done():
            self._write()

    def _write(self) -> None:
        """Writes what the socket takes; the loop tells when it takes more."""
        try:
            while self._rest is not None or self._out:
                if self._rest is None:
                    self._rest = memoryview(b"".join(self._out))
                    self._out.clear()
                sent = self._socket.send(self._rest)
                self._queued -= sent
                self._rest = self._rest[sent:] if sent < len(self._rest) else None
        except (BlockingIOError, InterruptedError):
            self._loop.add_writer(self._socket, self._on_writable)
        except OSError as error:
            self._close(error)
        if self._queued <= _FULL // 2:
            self._drain.set()
        if not self._queued and self._empty is not None and not self._empty.done():
            self._empty.set_result(None)

    def _on_writable(self) -> None:
        self._loop.remove_writer(self._socket)
        self._write()

    # -- reading ---------------------------------------------------------------

    def _on_readable(self) -> None:
        try:
            data = self._socket.recv(_READ)
        except (BlockingIOError, InterruptedError):
            return
        except OSError as error:
            self._close(error)
            return
        if not data:
            self._close(None)
            return
        try:
            for frame in self._reader.feed(data):
                self._take(frame)
        except (frames.ProtocolError, ValueError) as error:
            self._close(error)

    def _take(self, frame: Frame) -> None:
        kind = frame.kind
        if kind == frames.CALL:
            call = Call(self, frame, orjson.loads(frame.head))
            self._calls[frame.number] = call
            self._on_call(call)
        elif kind <= frames.PIECE:
            self._take_reply(frame)
        elif (waiting := self._calls.get(frame.number)) is not None:
            if kind != frames.CANCEL:
                waiting.hold(kind == frames.HOLD)
            elif waiting.cancel is not None:
                waiting.cancel()

    def _take_reply(self, frame: Frame) -> None:
        waiting = self._waiting.get(frame.number)
        if waiting is None:
            raise frames.ProtocolError("a reply to a call that nobody made")
        head = orjson.loads(frame.head) if frame.head else {}
        if frame.kind == frames.PIECE:
            if waiting.on_piece is not None:
                waiting.on_piece(head, frame.blobs)
            return
        del self._waiting[frame.number]
        if waiting.on_end is not None:
            waiting.on_end()
        if waiting.future.done():
            return  # cancelled
        if frame.kind == frames.ANSWER:
            waiting.future.set_result(Answer(head, frame.blobs))
        else:
            waiting.future.set_exception(_error(head))

    # -- calls -----------------------------------------------------------------

    def call(
        self,
        head: bytes,
        blobs: Sequence[bytes] = (),
        on_piece: _OnPiece = None,
        on_end: _OnEnd = None,
    ) -> asyncio.Future[Answer]:
        future: asyncio.Future[Answer] = self._loop.create_future()
        self._start(future, head, blobs, on_piece, on_end)
        return future

    def call_sync(self, head: bytes, blobs: Sequence[bytes] = ()) -> Answer:
        """From any thread; on the loop's own, everything else waits meanwhile."""
        if threading.get_ident() == self._thread:
            return self._call_here(head, blobs)
        future: concurrent.futures.Future[Answer] = concurrent.futures.Future()
        self._loop.call_soon_threadsafe(self._start, future, head, blobs)
        return future.result()

    def _call_here(self, head: bytes, blobs: Sequence[bytes]) -> Answer:
        future: concurrent.futures.Future[Answer] = concurrent.futures.Future()
        self._start(future, head, blobs)
        poll = select.poll()
        while not future.done():
            if self._rest is not None or self._out:
                self._write()
            unsent = self._rest is not None
            poll.register(
                self._socket, select.POLLIN | (select.POLLOUT if unsent else 0)
            )
            poll.poll()
            self._on_readable()
        return future.result()

    def _start(
        self,
        future: _Future,
        head: bytes,
        blobs: Sequence[bytes],
        on_piece: _OnPiece = None,
        on_end: _OnEnd = None,
    ) -> None:
        if self.closed.done():
            future.set_exception(_lost())
            if on_end is not None:
                on_end()
            return
        self._last = number = self._last % 0xFFFFFFFF + 1
        try:
            self.send(frames.CALL, number, head, blobs)
        except frames.ProtocolError as error:
            future.set_exception(ServerError(str(error), _CODES["limit"]))
            if on_end is not None:
                on_end()
            return
        self._waiting[number] = _Waiting(future, on_piece, on_end)

    def answer(self, call: Call, head: bytes = b"{}", blobs: Sequence[bytes] = ()) -> None:
        if self._calls.pop(call.number, None) is not None:
            self.send(frames.ANSWER, call.number, head, blobs)

    def refuse(self, call: Call, error: dict[str, Any]) -> None:
        if self._calls.pop(call.number, None) is not None:
            self.send(frames.ERROR, call.number, orjson.dumps(error))

    @property
    def open_calls(self) -> int:
        return len(self._calls)

    # -- the end ---------------------------------------------------------------

    def close(self) -> None:
        self._close(None)

    def _close(self, error: Exception | None) -> None:
        if self.closed.done():
            return
        self._loop.remove_reader(self._socket)
        self._loop.remove_writer(self._socket)
        self._socket.close()
        self._out.clear()
        self._rest = None
        self._queued = 0
        self._drain.set()
        if self._empty is not None and not self._empty.done():
            self._empty.set_result(None)
        if error is None or isinstance(error, OSError):
            self.closed.set_result(None)
        else:
            self.closed.set_exception(error)
        waiting, self._waiting = self._waiting, {}
        for each in waiting.values():
            if each.on_end is not None:
                each.on_end()
            if not each.future.done():
                each.future.set_exception(_lost())


def _lost() -> ServerError:
    return ServerError("the server is gone", _CODES["unavailable"])


def _error(head: dict[str, Any]) -> ServerError:
    code = _CODES.get(head.get("code", "internal"), _CODES["internal"])
    return ServerError(str(head.get("message", "")), code, str(head.get("type", "")))
