"""The connection to the server: calls in both directions.

Owns the socket instead of a transport, so that a synchronous call on the event loop's own thread (a
sync graph inside an async node) can wait for its response without the loop.
"""

from __future__ import annotations

import array
import asyncio
import concurrent.futures
import fcntl
import select
import socket
import termios
import threading
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import orjson

from heddle._errors import HeddleError
from heddle.runtime import frames
from heddle.runtime.frames import Frame

_READ = 256 << 10
_TURN = 0.005  # seconds a thread waits for the loop before it does the loop's work
_FULL = 4 << 20  # bytes in the send queue above which chunks wait

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
    """The server rejected a call of the worker."""

    def __init__(self, message: str, code: int = 0, type: str = "") -> None:
        super().__init__(message, code)
        self.type = type


class Call:
    """A call of the server. The code that handles it sets `cancel`."""

    __slots__ = ("number", "head", "blobs", "cancel", "flow", "is_heard", "is_cancelled", "_link")

    def __init__(self, link: Link, frame: Frame, head: dict[str, Any]) -> None:
        self.number = frame.number
        self.head = head
        self.blobs = frame.blobs
        self.cancel: Callable[[], object] | None = None
        self.flow: asyncio.Event | None = None  # cleared while the server holds the stream
        self.is_heard = not head.get("quiet")  # a client is subscribed to chunks
        self.is_cancelled = False
        self._link = link

    def member(self, name: str) -> Any:
        """A member of the head, which may be in a blob instead."""
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
        """Waits until the server accepts chunks again."""
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
        self.on_end = on_end  # called when the reply arrives, wanted or not


class Link:
    """One connection. All methods except `call_sync` run on the loop's thread.

    The lock guards the socket, the send queue and the waiting callers, because a thread that waits
    in `call_sync` does the loop's work while the loop is blocked: a sync graph on the loop's thread
    blocks it while other threads wait for replies.
    """

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
        self._lock = threading.RLock()
        self._reader = frames.Reader()
        self._taken: deque[Frame] = deque()
        self._out: list[bytes] = []
        self._rest: memoryview | None = None
        self._queued = 0
        self._flush_is_due = False
        self._has_writer = False
        self._drain: asyncio.Event = asyncio.Event()
        self._drain.set()
        self._empty: asyncio.Future[None] | None = None
        self._last = 0
        self._waiting: dict[int, _Waiting] = {}
        self._calls: dict[int, Call] = {}
        self._is_lost = False
        self._received = 0
        self.closed: asyncio.Future[None] = loop.create_future()
        loop.add_reader(sock, self._on_readable)

    # -- writing ---------------------------------------------------------------

    @property
    def is_full(self) -> bool:
        return self._queued > _FULL

    async def drained(self) -> None:
        await self._drain.wait()

    async def flushed(self) -> None:
        """Waits until the send queue is empty."""
        while self._queued and not self.closed.done():
            self._empty = self._loop.create_future()
            await self._empty

    def send(self, kind: int, number: int, head: bytes, blobs: Sequence[bytes] = ()) -> None:
        """Frames of one turn of the loop are sent in one write."""
        if self._is_lost:
            return
        self._append(frames.pack(kind, number, head, blobs))
        if not self._flush_is_due:
            self._flush_is_due = True
            self._loop.call_soon(self._flush)

    def _append(self, parts: list[bytes]) -> None:
        with self._lock:
            self._out += parts
            for part in parts:
                self._queued += len(part)
        if self._queued > _FULL:
            self._drain.clear()

    def _flush(self) -> None:
        self._flush_is_due = False
        if not self._has_writer and not self._is_lost:
            self._write()

    def _write(self) -> None:
        """Writes as much as the socket accepts; the loop reports when it accepts more."""
        try:
            with self._lock:
                is_done = self._write_some()
        except OSError as error:
            self._close(error)
            return
        if not is_done:
            self._has_writer = True
            self._loop.add_writer(self._socket, self._on_writable)
        if self._queued <= _FULL // 2:
            self._drain.set()
        if not self._queued and self._empty is not None and not self._empty.done():
            self._empty.set_result(None)

    def _write_some(self) -> bool:
        while self._rest is not None or self._out:
            if self._rest is None:
                self._rest = memoryview(b"".join(self._out))
                self._out.clear()
            try:
                sent = self._socket.send(self._rest)
            except (BlockingIOError, InterruptedError):
                return False
            self._queued -= sent
            self._rest = self._rest[sent:] if sent < len(self._rest) else None
        return True

    def _on_writable(self) -> None:
        self._loop.remove_writer(self._socket)
        self._has_writer = False
        self._write()

    # -- signs of life ---------------------------------------------------------

    @property
    def is_lost(self) -> bool:
        return self._is_lost

    def received(self) -> tuple[int, int]:
        """How often data was read, and how many bytes are there to be read; for any thread."""
        unread = array.array("i", [0])
        try:
            fcntl.ioctl(self._socket.fileno(), termios.FIONREAD, unread)
        except (OSError, ValueError):
            return self._received, 0  # closed
        return self._received, unread[0]

    # -- reading ---------------------------------------------------------------

    def _on_readable(self) -> None:
        try:
            with self._lock:
                self._read()
        except EOFError:
            self._drain_taken()
            self._close(None)
            return
        except (OSError, frames.ProtocolError) as error:
            self._close(error)
            return
        self._drain_taken()

    def _read(self) -> None:
        try:
            data = self._socket.recv(_READ)
        except (BlockingIOError, InterruptedError):
            return
        if not data:
            raise EOFError
        self._received += 1
        self._taken.extend(self._reader.feed(data))

    def _drain_taken(self) -> None:
        try:
            while self._taken:
                self._take(self._taken.popleft())
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
                waiting.is_cancelled = True
                waiting.cancel()

    def _take_reply(self, frame: Frame) -> None:
        waiting = self._waiting.get(frame.number)
        if waiting is None:
            raise frames.ProtocolError("a reply without a pending call")
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
        if self._start(future, head, blobs, on_piece, on_end):
            if not self._flush_is_due:
                self._flush_is_due = True
                self._loop.call_soon(self._flush)
        elif on_end is not None:
            on_end()
        return future

    def give_up(self, future: asyncio.Future[Answer]) -> None:
        """Notifies the server that the response is no longer needed."""
        for number, each in self._waiting.items():
            if each.future is future:
                self.send(frames.CANCEL, number, b"{}")
                break

    def call_sync(self, head: bytes, blobs: Sequence[bytes] = ()) -> Answer:
        """Runs on any thread; on the loop's own, everything else waits meanwhile."""
        future: concurrent.futures.Future[Answer] = concurrent.futures.Future()
        if not self._start(future, head, blobs, None, None):
            return future.result()
        is_here = threading.get_ident() == self._thread
        if not is_here:
            self._loop.call_soon_threadsafe(self._flush)
        while not future.done():
            if is_here:
                self._wait_here()
            elif not concurrent.futures.wait((future,), _TURN).done:
                self._help()
        return future.result()

    def _wait_here(self) -> None:
        """The loop's thread waits for a reply: it does nothing else."""
        if not self._has_writer:
            self._write()
        elif self._rest is not None:
            with self._lock:
                self._write_some()
        if not self._is_lost:
            poll = select.poll()
            poll.register(self._socket, select.POLLIN)
            poll.poll(_TURN * 1000)
            self._on_readable()

    def _help(self) -> None:
        """The loop may be blocked: other threads do their part themselves."""
        error: Exception | None = None
        with self._lock:
            if self._is_lost:
                return
            try:
                self._write_some()
                self._read()
            except (EOFError, OSError, frames.ProtocolError) as caught:
                error = caught
            mine = [each for each in self._taken if self._is_for_thread(each)]
            for frame in mine:
                self._taken.remove(frame)
                self._take_reply(frame)
            if error is not None:
                self._fail_waiting(concurrent.futures.Future)
        if error is not None:
            known = None if isinstance(error, EOFError) else error
            self._loop.call_soon_threadsafe(self._close, known)
        elif self._taken:
            self._loop.call_soon_threadsafe(self._drain_taken)

    def _is_for_thread(self, frame: Frame) -> bool:
        if frame.kind not in (frames.ANSWER, frames.ERROR):
            return False
        waiting = self._waiting.get(frame.number)
        return waiting is not None and isinstance(waiting.future, concurrent.futures.Future)

    def _start(
        self,
        future: _Future,
        head: bytes,
        blobs: Sequence[bytes],
        on_piece: _OnPiece,
        on_end: _OnEnd,
    ) -> bool:
        with self._lock:
            if self._is_lost:
                future.set_exception(_lost())
                return False
            self._last = number = self._last % 0xFFFFFFFF + 1
            try:
                self._append(frames.pack(frames.CALL, number, head, blobs))
            except frames.ProtocolError as error:
                future.set_exception(ServerError(str(error), _CODES["limit"]))
                return False
            self._waiting[number] = _Waiting(future, on_piece, on_end)
            return True

    def answer(self, call: Call, head: bytes = b"{}", blobs: Sequence[bytes] = ()) -> None:
        if self._calls.pop(call.number, None) is not None:
            self.send(frames.ANSWER, call.number, head, blobs)

    def refuse(self, call: Call, error: dict[str, Any]) -> None:
        if self._calls.pop(call.number, None) is not None:
            self.send(frames.ERROR, call.number, orjson.dumps(error))

    # -- closing ---------------------------------------------------------------

    def close(self) -> None:
        self._close(None)

    def _close(self, error: Exception | None) -> None:
        with self._lock:
            if self._is_lost:
                return
            self._is_lost = True
            self._loop.remove_reader(self._socket)
            self._loop.remove_writer(self._socket)
            self._socket.close()
            self._out.clear()
            self._rest = None
            self._queued = 0
            self._fail_waiting(object)
        self._drain.set()
        if self._empty is not None and not self._empty.done():
            self._empty.set_result(None)
        if error is None or isinstance(error, OSError):
            self.closed.set_result(None)
        else:
            self.closed.set_exception(error)

    def _fail_waiting(self, kind: type) -> None:
        for number, each in [*self._waiting.items()]:
            if not isinstance(each.future, kind):
                continue
            del self._waiting[number]
            if each.on_end is not None:
                each.on_end()
            if not each.future.done():
                each.future.set_exception(_lost())


def _lost() -> ServerError:
    return ServerError("the connection to the server was closed", _CODES["unavailable"])


def _error(head: dict[str, Any]) -> ServerError:
    code = _CODES.get(head.get("code", "internal"), _CODES["internal"])
    return ServerError(str(head.get("message", "")), code, str(head.get("type", "")))
