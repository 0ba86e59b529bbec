"""A server that counts requests: each is POST /RUN/NODE with a body that identifies its task. It
can delay responses, and it waits until all requests of a killed process are counted."""

import collections
import json
import threading
import time
import urllib.request
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from normalise import ID


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self):
        body = self.rfile.read(int(self.headers.get("Content-Length", 0))).decode()
        _, run, node = self.path.split("/")
        body = ID.sub("?", body)
        self.server.count(self.connection, run, node, body)
        self.server.work(node, body)
        self.server.listen_to(self.connection)
        try:
            self.answer({"path": self.path})
        except OSError:
            pass  # the client was killed

    def do_GET(self):
        self.answer({"method": "GET", "path": self.path, "body": None})

    def answer(self, value):
        text = json.dumps(value).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def log_message(self, *arguments):
        pass


class Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 256

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Handler)
        self.lock = threading.Condition()
        self.requests = collections.defaultdict(list)  # run to [(node, body)]
        self.listening = set()  # connections that may have an uncounted request
        self.held = set()  # nodes without a response
        self.url = "http://127.0.0.1:%d" % self.server_address[1]
        threading.Thread(target=self.serve_forever, daemon=True).start()

    # Called by handlers.

    def process_request(self, request, client_address):
        self.listen_to(request)
        super().process_request(request, client_address)

    def shutdown_request(self, request):
        with self.lock:
            self.listening.discard(request)
            self.lock.notify_all()
        super().shutdown_request(request)

    def handle_error(self, request, client_address):
        pass  # connections of killed processes

    def listen_to(self, connection):
        with self.lock:
            self.listening.add(connection)

    def count(self, connection, run, node, body):
        with self.lock:
            self.requests[run].append((node, body))
            self.listening.discard(connection)
            self.lock.notify_all()

    def work(self, node, body):
        """Takes a while, the same time for every request of a task."""
        time.sleep(0.001 * (sum(body.encode()) % 7))
        with self.lock:
            self.lock.wait_for(lambda: node not in self.held)

    # Called by tests.

    def hold(self, *nodes):
        """From now on, only these nodes get no response."""
        with self.lock:
            self.held = set(nodes)
            self.lock.notify_all()

    def seen(self, run):
        with self.lock:
            return list(self.requests[run])

    def wait(self, run, number, child, seconds):
        """Waits until a run has sent that many requests, its process has ended, or the time is
        over."""
        deadline = time.monotonic() + seconds
        with self.lock:
            while len(self.requests[run]) < number and child.poll() is None and time.monotonic() < deadline:
                self.lock.wait(0.01)

    def settle(self):
        """Waits until all requests of ended processes are counted."""
        # Connections are accepted in order: once this one is, all earlier ones are too.
        with urllib.request.urlopen(self.url) as answer:
            answer.read()
        with self.lock:
            if not self.lock.wait_for(lambda: not self.listening, 60):
                raise TimeoutError("connections of processes that are gone stay open")
