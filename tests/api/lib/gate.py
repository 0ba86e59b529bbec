"""An HTTP server that delays its responses until the test opens it: until then, runs of the graph
`gated` stay running."""

from __future__ import annotations

import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class Quiet(ThreadingHTTPServer):
    request_queue_size = 128  # all runs of a test may connect at once; one that finds it full retries after 1 s

    def handle_error(self, *_) -> None:
        pass  # the client that waited here was killed


class Gate:
    def __init__(self):
        self.arrived = 0
        self.lock, self.is_open = threading.Lock(), threading.Event()
        gate = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                with gate.lock:
                    gate.arrived += 1
                gate.is_open.wait()
                self.send_response(200)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, *_) -> None:
                pass

        self.server = Quiet(("127.0.0.1", 0), Handler)
        self.config = {"configurable": {"gate": f"http://127.0.0.1:{self.server.server_port}"}}

    def open(self) -> None:
        self.is_open.set()

    def body(self, **more) -> dict:
        """Returns the body of a request for a run that blocks at this gate."""
        return {"assistant_id": "gated", "input": {"messages": []}, "config": self.config, **more}

    def __enter__(self) -> Gate:
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_) -> None:
        self.open()
        self.server.shutdown()
        self.server.server_close()
