"""A client that starts a run and does not read its stream slows the model down: the server stops
reading the model's socket, memory does not grow, and the run continues when the client reads or
disconnects."""

from __future__ import annotations

import json
import socket
import threading
import time

import pytest
from plain import events, human
from programs import Heddle, wait_for
from scripted import Peer

KIB, MIB = 1024, 1024 * 1024
PIECES, PADDING = 4000, 16 * KIB
TOTAL = PIECES * PADDING  # size of the provider's response, at least: 64 MB
# The server reads at most this many bytes from a provider if the client does not read: half of
# --stream-retention-bytes in events, the kernel's buffers in both directions, and the chunks that
# produced these.
BOUND = TOTAL // 2
RETENTION = 256 * KIB
TEXT = "".join(f"{number} " for number in range(PIECES))


def chunk(delta: dict, reason: str | None = None) -> bytes:
    """A large comment precedes the small data: the chunk is large, but its events are small."""
    data = {"id": "c", "object": "chat.completion.chunk", "model": "m",
            "choices": [{"index": 0, "delta": delta, "finish_reason": reason}]}  # fmt: skip
    return b":" + b"x" * PADDING + b"\ndata: " + json.dumps(data).encode() + b"\n\n"


class Provider:
    """Sends one long response as fast as possible, and counts its bytes."""

    def __init__(self):
        self.listening = socket.socket()
        self.listening.bind(("127.0.0.1", 0))
        self.listening.listen()
        self.base_url = f"http://127.0.0.1:{self.listening.getsockname()[1]}/v1"
        self.sent, self.is_complete, self.is_cut = 0, False, False
        self.thread = threading.Thread(target=self.serve, daemon=True)
        self.thread.start()

    def serve(self) -> None:
        connection, _ = self.listening.accept()
        with connection:
            # Read the whole request: closing a socket with unread bytes would discard what was
            # sent.
            Peer(connection).read_request()
            connection.settimeout(None)
            try:
                self.send(
                    connection, b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n"
                )
                for number in range(PIECES):
                    self.send(connection, chunk({"role": "assistant", "content": f"{number} "}))
                self.send(connection, chunk({}, "stop") + b"data: [DONE]\n\n")
                self.is_complete = True
            except OSError:
                self.is_cut = True

    def send(self, connection: socket.socket, data: bytes) -> None:
        view = memoryview(data)
        while view:
            taken = connection.send(view)
            self.sent += taken
            view = view[taken:]

    def is_blocked(self) -> bool:
        """Nothing was sent for a while, although there is more."""
        before = self.sent
        time.sleep(1)
        return self.sent == before and not self.is_complete

    def has_said_all(self) -> bool:
        """Called when the run has its response: the last bytes are counted a moment later."""
        self.thread.join(60)
        return self.is_complete and self.sent > TOTAL

    def close(self) -> None:
        self.listening.close()
        self.thread.join(60)
        assert not self.thread.is_alive()


@pytest.fixture
def provider():
    made = Provider()
    yield made
    made.close()


def serve(heddle, **more) -> Heddle:
    options = {"stream-retention-bytes": RETENTION, "slow-timeout": 600, **more}
    return heddle(options=[text for name, value in options.items() for text in (f"--{name}", str(value))])


class Reader:
    """Starts a run with runs/stream, reads the first line of the response and then stops."""

    def __init__(self, server: Heddle, provider: Provider, **more):
        self.server, self.thread = server, server.thread()
        body = {"assistant_id": "agent", "input": human("go on"), "stream_mode": ["messages-tuple"],
                "config": {"configurable": configurable(provider)}, **more}  # fmt: skip
        text = json.dumps(body).encode()
        self.socket = socket.socket()
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        self.socket.settimeout(120)
        self.socket.connect(("127.0.0.1", server.port))
        head = f"POST /threads/{self.thread}/runs/stream HTTP/1.0\r\nContent-Type: application/json\r\n"
        self.socket.sendall(f"{head}Content-Length: {len(text)}\r\n\r\n".encode() + text)
        assert self.socket.recv(12) == b"HTTP/1.1 200"

    def read_all(self) -> list[tuple]:
        """Reads to the end of the connection."""
        parts = []
        while part := self.socket.recv(65536):
            parts.append(part)
        return events(b"".join(parts).split(b"\r\n\r\n", 1)[1].decode())

    def is_cut_off(self) -> bool:
        """The server has closed the connection before the end of the response."""
        try:
            return "".join(data[0]["content"] for event, data, _ in self.read_all() if event == "messages") != TEXT
        except (OSError, ValueError):
            return True

    def close(self) -> None:
        self.socket.close()

    def run(self) -> dict:
        return self.server.ask("GET", f"/threads/{self.thread}/runs")[0]

    def answer(self) -> str:
        return self.server.state(self.thread)["values"]["messages"][-1]["content"]


def configurable(provider: Provider) -> dict:
    return {"base_url": provider.base_url, "custom_model_name": "m", "custom_api_key": "sk-x"}


def stall(server: Heddle, provider: Provider, **more) -> Reader:
    """Returns a reader that has stopped reading while its provider is blocked."""
    reader = Reader(server, provider, **more)
    wait_for(provider.is_blocked, what="the provider to be held up")
    assert provider.sent < BOUND
    assert reader.run()["status"] == "running"
    return reader


def runs_to_its_end(reader: Reader, provider: Provider) -> None:
    wait_for(lambda: reader.run()["status"] != "running", 120, "the end of the run")
    assert reader.run()["status"] == "success"
    assert provider.has_said_all()
    assert reader.answer() == TEXT


def test_the_run_continues_with_its_reader(heddle, provider):
    reader = stall(serve(heddle), provider)
    told = reader.read_all()
    assert "".join(data[0]["content"] for event, data, _ in told if event == "messages") == TEXT
    runs_to_its_end(reader, provider)
    reader.close()


def test_the_run_continues_without_its_reader(heddle, provider):
    reader = stall(serve(heddle), provider, on_disconnect="continue")
    reader.close()
    runs_to_its_end(reader, provider)


def test_a_held_run_does_not_wait_forever(heddle, provider):
    # The server disconnects a client that does not read.
    reader = Reader(serve(heddle, **{"slow-timeout": 3}), provider, on_disconnect="continue")
    runs_to_its_end(reader, provider)
    assert reader.is_cut_off()
    reader.close()


def test_cancelling_ends_a_held_run(heddle, provider):
    reader = stall(serve(heddle), provider)
    run = reader.run()["run_id"]
    with reader.server.client() as client:
        assert client.post(f"/threads/{reader.thread}/runs/{run}/cancel", params={"wait": "true"}).is_success
    wait_for(lambda: provider.is_cut, what="the provider's socket to be closed")
    assert reader.run()["status"] == "interrupted"
    reader.close()


def test_a_reader_that_leaves_may_end_the_run(heddle, provider):
    reader = stall(serve(heddle), provider, on_disconnect="cancel")
    reader.close()
    wait_for(lambda: provider.is_cut, what="the provider's socket to be closed")
    wait_for(lambda: reader.run()["status"] == "interrupted", what="the end of the run")


def test_runs_without_a_reader_are_not_held_up(heddle, provider):
    server = serve(heddle)
    thread = server.thread()
    body = {"assistant_id": "agent", "input": human("go on"), "stream_mode": ["messages-tuple"],
            "config": {"configurable": configurable(provider)}}  # fmt: skip
    run = server.ask("POST", f"/threads/{thread}/runs", json=body)["run_id"]
    # A client that joins and does not read does not slow the run down either.
    joined = socket.create_connection(("127.0.0.1", server.port))
    joined.sendall(f"GET /threads/{thread}/runs/{run}/stream HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
    server.ask("GET", f"/threads/{thread}/runs/{run}/join")
    assert provider.has_said_all()
    assert server.state(thread)["values"]["messages"][-1]["content"] == TEXT
    joined.close()
