"""A server that sends exactly the bytes of a test.

    def handler(peer, request):                 # runs in a thread for each connection
        peer.send(b"HTTP/1.1 200 OK\\r\\n…")     # any bytes, also invalid HTTP
        peer.wait_closed()                      # until the client has closed the connection

    with Scripted(handler) as server: … server.url … server.requests

The handler is called for each request of a connection, which ends when the handler closes it
(`peer.close()`, `peer.reset()`) or the client does. An exception in a handler fails the test.
"""

from __future__ import annotations

import json
import queue
import socket
import struct
import threading
from dataclasses import dataclass, field

LIMIT_SECONDS = 60


@dataclass
class Request:
    method: str
    path: str
    headers: dict[str, str]
    body: bytes
    number: int = field(default=0)  # index of the request on this server, from 0

    @property
    def json(self):
        return json.loads(self.body)


class Peer:
    """One connection, seen from the server."""

    def __init__(self, connection: socket.socket):
        self.socket = connection
        self.socket.settimeout(LIMIT_SECONDS)
        self.rest = b""
        self.is_closed = False

    def read_request(self) -> Request | None:
        """Returns the next request; None when the client has closed."""
        while b"\r\n\r\n" not in self.rest:
            if not self.read_more():
                return None
        head, self.rest = self.rest.split(b"\r\n\r\n", 1)
        first, *lines = head.decode("latin-1").split("\r\n")
        method, path, _ = first.split(" ", 2)
        headers = {name.lower(): value.strip() for name, value in (line.split(":", 1) for line in lines)}
        length = int(headers.get("content-length", 0))
        while len(self.rest) < length:
            if not self.read_more():
                return None
        body, self.rest = self.rest[:length], self.rest[length:]
        return Request(method, path, headers, body)

    def read_more(self) -> bool:
        try:
            got = self.socket.recv(65536)
        except (ConnectionError, TimeoutError):
            got = b""
        self.rest += got
        return bool(got)

    def send(self, data: bytes | str) -> bool:
        """Returns False when the client has disconnected."""
        try:
            self.socket.sendall(data.encode() if isinstance(data, str) else data)
        except (ConnectionError, TimeoutError):
            return False
        return True

    def answer(self, status: int, body="", headers: dict | None = None, content_type: str | None = None) -> bool:
        """Sends a whole response; a body that is neither text nor bytes is sent as JSON."""
        if not isinstance(body, (str, bytes)):
            body, content_type = json.dumps(body), content_type or "application/json"
        body = body.encode() if isinstance(body, str) else body
        lines = {"Content-Type": content_type or "text/plain", "Content-Length": str(len(body)), **(headers or {})}
        head = "".join(f"{name}: {value}\r\n" for name, value in lines.items())
        return self.send(f"HTTP/1.1 {status} Scripted\r\n{head}\r\n".encode() + body)

    def begin_sse(self, headers: dict | None = None, content_type: str = "text/event-stream") -> bool:
        """Sends the head of a stream, which ends with the connection or with end()."""
        lines = {"Content-Type": content_type, "Transfer-Encoding": "chunked", **(headers or {})}
        head = "".join(f"{name}: {value}\r\n" for name, value in lines.items())
        return self.send(f"HTTP/1.1 200 OK\r\n{head}\r\n")

    def chunk(self, data: bytes | str) -> bool:
        data = data.encode() if isinstance(data, str) else data
        return self.send(b"%x\r\n%s\r\n" % (len(data), data))

    def event(self, data, event: str | None = None) -> bool:
        """Sends one event after begin_sse()."""
        text = data if isinstance(data, str) else json.dumps(data)
        return self.chunk((f"event: {event}\n" if event else "") + f"data: {text}\n\n")

    def end(self) -> bool:
        return self.send(b"0\r\n\r\n")

    def wait_closed(self) -> None:
        """Waits until the client closes; fails if it does not."""
        try:
            while self.socket.recv(65536):
                pass
        except ConnectionError:
            pass

    def close(self) -> None:
        self.is_closed = True
        self.socket.close()

    def reset(self) -> None:
        """Closes with a RST."""
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.close()


class Scripted:
    def __init__(self, handler):
        self.handler = handler
        self.requests: list[Request] = []
        self.closed: queue.Queue[int] = queue.Queue()  # a number for each ended connection
        self.errors: list[BaseException] = []
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self.listener.getsockname()[1]}"
        self.lock = threading.Lock()
        self.connections = 0
        self.open: set[socket.socket] = set()

    def serve(self) -> None:
        while True:
            try:
                connection, _ = self.listener.accept()
            except OSError:
                return
            self.connections += 1
            threading.Thread(target=self.work, args=(connection, self.connections), daemon=True).start()

    def work(self, connection: socket.socket, number: int) -> None:
        peer = Peer(connection)
        with self.lock:
            self.open.add(connection)
        try:
            while not peer.is_closed and (request := peer.read_request()):
                with self.lock:
                    request.number = len(self.requests)
                    self.requests.append(request)
                self.handler(peer, request)
        except BaseException as error:
            if not isinstance(error, OSError) or not self.is_ending():
                self.errors.append(error)
        finally:
            with self.lock:
                self.open.discard(connection)
            connection.close()
            self.closed.put(number)

    def is_ending(self) -> bool:
        return self.listener.fileno() < 0

    def wait_closed(self, seconds: float = LIMIT_SECONDS) -> int:
        """Waits until one more connection has ended; returns its number, from 1."""
        return self.closed.get(timeout=seconds)

    def __enter__(self) -> Scripted:
        threading.Thread(target=self.serve, daemon=True).start()
        return self

    def stop(self) -> None:
        self.listener.close()
        with self.lock:
            left = list(self.open)
        for connection in left:
            try:
                connection.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass

    def __exit__(self, kind, *_) -> None:
        self.stop()
        if kind is None:
            assert not self.errors, self.errors
