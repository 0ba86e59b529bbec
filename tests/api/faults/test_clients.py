"""Clients that stall, send slowly, send garbage or disconnect: the server releases everything."""

import json
import random
import socket
import time
from http.client import HTTPConnection, HTTPException

import httpx
import pytest
from load import comes_to_rest, eventually, metrics, metrics_of, open_sockets
from plain import human
from server import Server

pytestmark = pytest.mark.beyond_peer("has other limits")

GAUGES = ("heddle_http_connections", "heddle_http_requests", "heddle_http_streams", "heddle_http_body_bytes",
          "heddle_http_answer_bytes", "heddle_stream_memory_bytes", "heddle_runs_running", "heddle_runs_pending")  # fmt: skip


@pytest.fixture
def short_server():
    """A server with short timeouts."""
    with Server(options=["--slow-timeout", "3", "--idle-timeout", "3", "--stream-heartbeat", "1"]) as running:
        # Resources that are opened once, at the first use, do not count.
        with client_of(running) as http:
            thread = http.post("/threads", json={}).json()["thread_id"]
            http.post(f"/threads/{thread}/runs/wait", json={"assistant_id": "echo", "input": human("warm")})
            http.delete(f"/threads/{thread}")
        yield running


def client_of(server) -> httpx.Client:
    """Opens a new connection for each request: the server may close an idle one at any moment."""
    return httpx.Client(base_url=server.url, timeout=60, limits=httpx.Limits(max_keepalive_connections=0))


def connect(server, receive: int = 0) -> socket.socket:
    client = socket.socket()
    if receive:
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive)
    client.settimeout(60)
    client.connect(("127.0.0.1", server.port))
    return client


def request(method: str, path: str, body: dict | None = None) -> bytes:
    content = json.dumps(body).encode() if body is not None else b""
    return f"{method} {path} HTTP/1.1\r\nHost: localhost\r\nContent-Length: {len(content)}\r\n\r\n".encode() + content


def is_closed(client: socket.socket) -> bool:
    """Returns whether the server closed the connection; discards the bytes received before."""
    client.setblocking(False)
    try:
        while client.recv(65536):
            pass
        return True
    except BlockingIOError:
        return False
    except ConnectionError:
        return True


def gauges(server) -> dict | None:
    """Returns None when the connection for this request, which is counted too, did not last."""
    asking = HTTPConnection("127.0.0.1", server.port, timeout=60)

    def ask() -> dict[str, float]:
        asking.request("GET", "/metrics")
        return metrics_of(asking.getresponse().read().decode())

    try:
        found, sockets = ask(), open_sockets(server)
        ask()
        return {name: found[name] for name in GAUGES} | {"sockets": sockets}
    except (ConnectionError, HTTPException):
        return None
    finally:
        asking.close()


class Costs:
    """with Costs(server): … checks that the block leaves no resources in use."""

    def __init__(self, server):
        self.server = server

    def __enter__(self):
        self.before = eventually(self.at_rest)

    def at_rest(self) -> dict | None:
        now = gauges(self.server)
        return now if now and now["heddle_http_connections"] == 1 else None

    def __exit__(self, kind, *_):
        if kind is not None:
            return
        try:
            eventually(lambda: gauges(self.server) == self.before)
        except AssertionError:
            assert gauges(self.server) == self.before


def threads_of(http: httpx.Client, count: int) -> list[str]:
    return [http.post("/threads", json={}).json()["thread_id"] for _ in range(count)]


def test_a_client_that_never_reads(short_server):
    """Clients that never read a stream or a large response."""
    with Costs(short_server), client_of(short_server) as http:
        [thread] = threads_of(http, 1)
        http.post(
            f"/threads/{thread}/state",
            json={"values": human("x" * 4_000_000), "as_node": "reply", "assistant_id": "echo"},
        )
        clients = [connect(short_server, 4096) for _ in range(20)]
        for number, client in enumerate(clients):
            path = "/state" if number % 2 else "/stream"
            client.sendall(request("GET", f"/threads/{thread}{path}"))
        eventually(
            lambda: metrics(short_server)["heddle_http_streams"] == 10
        )  # a stream that opens too late has no events to read
        body = {"assistant_id": "echo", "input": human("y" * 100_000), "stream_mode": ["values", "debug"]}
        for _ in range(3):
            assert http.post(f"/threads/{thread}/runs/wait", json=body).status_code == 200
        # The clients read only after the server has closed the connections.
        eventually(lambda: metrics(short_server)["heddle_http_connections"] <= 2)
        eventually(lambda: all(is_closed(client) for client in clients))  # bytes in flight are delivered first
        for client in clients:
            client.close()
        http.delete(f"/threads/{thread}")


@pytest.mark.parametrize("where", ["head", "body", "nothing"])
def test_one_byte_a_second(short_server, where):
    """Or no byte at all: the server times out."""
    message = request("POST", "/threads", {"metadata": {"long": "x" * 1000}})
    split = message.index(b"\r\n\r\n") + 4
    with Costs(short_server):
        clients = [connect(short_server) for _ in range(10)]
        sent = {"head": 0, "body": split, "nothing": len(message)}[where]
        for client in clients:
            client.sendall(message[:sent] if where == "body" else b"")
        for byte in message[sent : sent + 60]:
            time.sleep(1)
            if all(is_closed(client) for client in clients):
                break
            for client in clients:
                try:
                    client.send(bytes([byte]))
                except ConnectionError:
                    pass
        eventually(lambda: all(is_closed(client) for client in clients))
        for client in clients:
            client.close()


def test_garbage(short_server):
    chance = random.Random(1)
    whole = request("POST", "/runs/wait", {"assistant_id": "echo", "input": human("hi")})
    junk = [chance.randbytes(2000), b"\0" * 5000, b"GET " + b"/" * 100_000, b"GET / HTTP/1.1\r\n" + b"a: b\r\n" * 10_000,
            whole[:50], whole.replace(b"HTTP/1.1", b"HTTP/9.9"), whole.replace(b"Content-Length: ", b"Content-Length: -"),
            whole.replace(b"\r\n\r\n", b"\r\nTransfer-Encoding: chunked\r\n\r\nZZ\r\n"), b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
            b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + chance.randbytes(400)]  # fmt: skip
    with Costs(short_server):
        for bytes_ in junk * 5:
            with connect(short_server) as client:
                try:
                    client.sendall(bytes_)
                    client.shutdown(socket.SHUT_WR)
                    while client.recv(65536):
                        pass
                except ConnectionError:
                    pass
        assert httpx.get(short_server.url + "/ok", timeout=60).json() == {"ok": True}


@pytest.mark.parametrize("kind", ["stream", "wait"])
@pytest.mark.parametrize("wish", ["cancel", "continue"])
def test_a_client_that_leaves_in_the_middle(short_server, kind, wish):
    """The run is cancelled or continues, as `on_disconnect` requests."""
    with Costs(short_server), client_of(short_server) as http:
        threads = threads_of(http, 10)
        clients = [connect(short_server) for _ in threads]
        # The last run shows when the server has noticed the disconnects.
        for thread, client, wished in zip(threads, clients, [wish] * 9 + ["cancel"], strict=True):
            body = {
                "assistant_id": "nap",
                "input": {"ms": 600_000},
                "on_disconnect": wished,
                "stream_mode": ["updates"],
            }
            client.sendall(request("POST", f"/threads/{thread}/runs/{kind}", body))

        def found() -> list[str]:
            return [run["status"] for thread in threads for run in http.get(f"/threads/{thread}/runs").json()]

        eventually(lambda: found() == ["running"] * 10)
        for client in clients:
            if kind == "stream":
                assert client.recv(100)
            client.close()
        eventually(lambda: found()[-1] == "interrupted")
        if wish == "continue":
            assert found()[:-1] == ["running"] * 9
            assert http.post("/runs/cancel", json={"status": "all"}).status_code == 204
        comes_to_rest(short_server)
        assert found() == ["interrupted"] * 10
        for thread in threads:
            assert http.delete(f"/threads/{thread}").status_code == 204


def test_a_client_that_leaves_a_queued_run(short_server):
    """The run is pending; other readers of its stream get the event `end`."""
    with Costs(short_server), client_of(short_server) as http:
        [thread] = threads_of(http, 1)
        nap = {"assistant_id": "nap", "input": {"ms": 600_000}}
        first = http.post(f"/threads/{thread}/runs", json=nap).json()
        body = {**nap, "on_disconnect": "cancel"}
        with connect(short_server) as leaver, connect(short_server) as reader:
            leaver.sendall(request("POST", f"/threads/{thread}/runs/stream", body))
            assert b" 200 OK" in leaver.recv(1000)
            second = http.get(f"/threads/{thread}/runs").json()[0]
            assert second["run_id"] != first["run_id"] and second["status"] == "pending"
            reader.sendall(request("GET", f"/threads/{thread}/runs/{second['run_id']}/stream"))
            assert b" 200 OK" in reader.recv(1000)
            leaver.close()
            answer = b""
            while not answer.endswith(b"\r\n0\r\n\r\n"):  # all of it
                part = reader.recv(65536)
                assert part, answer
                answer += part
            assert b"event: end" in answer and b'"status":"interrupted"' in answer
        assert http.post(f"/threads/{thread}/runs/{first['run_id']}/cancel?wait=true").status_code == 200
        comes_to_rest(short_server)
        http.delete(f"/threads/{thread}")
