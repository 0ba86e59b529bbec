"""A small HTTP server that records its requests: the receiver of a webhook."""

from __future__ import annotations

import contextlib
import json
import queue
import socket
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


@contextlib.contextmanager
def closed_port():
    """Returns a port without a listener, until Listener(port=…) opens it."""
    with socket.socket() as held:
        held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        held.bind(("127.0.0.1", 0))
        yield held.getsockname()[1]


class Roomy(ThreadingHTTPServer):
    request_queue_size = 128  # all webhooks of a test may connect at once; one that finds it full retries after 1 s


class Listener:
    """Responds to each POST with the next of `statuses`, and then always with the last one."""

    def __init__(self, statuses: tuple[int, ...] = (200,), port: int = 0):
        self.received: queue.Queue[dict] = queue.Queue()
        left = list(statuses)
        received = self.received

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
                status = left.pop(0) if len(left) > 1 else left[0]
                received.put({"path": self.path, "headers": dict(self.headers), "body": json.loads(body)})
                self.send_response(status)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, *_) -> None:
                pass

        self.server = Roomy(("127.0.0.1", port), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}"

    def next(self, timeout: float = 60) -> dict:
        return self.received.get(timeout=timeout)

    def __enter__(self) -> Listener:
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_) -> None:
        self.server.shutdown()
        self.server.server_close()
