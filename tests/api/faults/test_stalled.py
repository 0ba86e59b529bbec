"""2,000 readers that stop reading their streams use a bounded amount of memory, in the server and
in the kernel, and do not slow down other clients."""

import json
import re
import resource
import socket
from pathlib import Path

import httpx
import pytest
from load import comes_to_rest, eventually, metrics
from plain import human
from server import Server

pytestmark = pytest.mark.beyond_peer("has no bounds")

READERS, THREADS = 2000, 20
KIB, MIB = 1024, 1024 * 1024
STREAM_MEMORY = 16 * MIB  # --stream-memory
PER_THREAD = 4 * MIB  # --stream-retention-bytes
WORDS = 3000

# The server may grow by the events of all threads; for each reader by its connection, the buffer of
# its stream (16 KiB) and allocator overhead; and by the memory of the search index. This is less
# than a hundredth of the bytes that were sent to the readers. Most of it is AddressSanitizer's
# allocator: it grew by 185 MB with the search index, by 159 MB without it, and by 173 MB with it
# and without quarantine. A release build grows by 62 MB with the search index and by 60 MB without
# it.
PROCESS_BOUND = STREAM_MEMORY + READERS * 48 * KIB + 96 * MIB
# In the kernel: a send buffer of 64 KiB for each reader, which it counts generously, and the
# readers' receive buffers.
KERNEL_BOUND = READERS * 160 * KIB


class ThriftyServer(Server):
    """With sanitizers, freed memory stays in quarantine for a while; this server keeps little of
    it."""

    def environment(self) -> dict[str, str]:
        found = super().environment()
        return {**found, "ASAN_OPTIONS": found["ASAN_OPTIONS"] + ":quarantine_size_mb=8:malloc_context_size=2"}


@pytest.fixture
def chatty_server(tmp_path):
    """A server with a graph that streams many events."""
    nodes = {"say": {"kind": "script", "replies": [{"content": "word " * WORDS}], "stream": {"by": "word"}}}
    graph = {
        "name": "chatty",
        "state": {"messages": {"reducer": "messages"}},
        "nodes": nodes,
        "edges": [["__start__", "say"], ["say", "__end__"]],
    }
    file = tmp_path / "chatty.json"
    file.write_text(json.dumps(graph))
    echo = Path(__file__).parent.parent / "lib/graphs/echo.json"
    options = ["--stream-memory", str(STREAM_MEMORY), "--stream-retention-bytes", str(PER_THREAD)]
    with ThriftyServer(graphs={"chatty": file, "echo": echo}, options=options) as running:
        yield running


def kernel_bytes() -> int:
    """Returns the memory of all TCP sockets of the machine."""
    text = Path("/proc/net/sockstat").read_text()
    return int(re.search(r"^TCP:.* mem (\d+)", text, re.M)[1]) * resource.getpagesize()


def allow_files(count: int) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard != resource.RLIM_INFINITY and hard < count:
        pytest.skip(f"{count} files cannot be open here")
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, count), hard))


def open_readers(server, threads: list[str]) -> list[socket.socket]:
    """Opens streams: each reader receives the status line and then stops reading."""
    readers = []
    for number in range(READERS):
        reader = socket.socket()
        reader.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        reader.settimeout(60)
        reader.connect(("127.0.0.1", server.port))
        thread = threads[number % len(threads)]
        reader.sendall(f"GET /threads/{thread}/stream HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
        readers.append(reader)
    for reader in readers:
        assert reader.recv(15) == b"HTTP/1.1 200 OK"
    return readers


def tell(http: httpx.Client, thread: str) -> None:
    """Runs once on the thread, which sends about 3,000 events to each of its readers."""
    body = {"assistant_id": "chatty", "input": human("go on"), "stream_mode": ["messages-tuple"]}
    answer = http.post(f"/threads/{thread}/runs/stream", json=body)
    assert answer.text.count("event: messages") >= WORDS


def others_are_served(http: httpx.Client) -> None:
    thread = http.post("/threads", json={}).json()["thread_id"]
    for number in range(5):
        answer = http.post(f"/threads/{thread}/runs/wait", json={"assistant_id": "echo", "input": human(f"{number}")})
        assert answer.status_code == 200, answer.text
        assert len(http.get(f"/threads/{thread}/state").json()["values"]["messages"]) == 2 * (number + 1)
    assert http.delete(f"/threads/{thread}").status_code == 204


def test_readers_that_stop_reading(chatty_server):
    allow_files(READERS + 200)
    with httpx.Client(base_url=chatty_server.url, timeout=120) as http:
        threads = [http.post("/threads", json={}).json()["thread_id"] for _ in range(THREADS)]
        tell(http, threads[0])  # allocates what is allocated once
        others_are_served(http)
        own, kernel = chatty_server.resident_kib() * KIB, kernel_bytes()
        readers = open_readers(chatty_server, threads)
        assert metrics(chatty_server)["heddle_http_streams"] == READERS
        most_own = most_kernel = 0
        for _ in range(3):
            for thread in threads:
                tell(http, thread)
                most_own = max(most_own, chatty_server.resident_kib() * KIB - own)
                most_kernel = max(most_kernel, kernel_bytes() - kernel)
            others_are_served(http)
        sent = metrics(chatty_server)["heddle_stream_memory_bytes"]
        print(f"process +{most_own // KIB} KiB, kernel +{most_kernel // KIB} KiB, events {sent / KIB:.0f} KiB")
        assert sent <= STREAM_MEMORY
        assert most_own < PROCESS_BOUND, f"{most_own} of {PROCESS_BOUND} bytes"
        assert most_kernel < KERNEL_BOUND, f"{most_kernel} of {KERNEL_BOUND} bytes"
        # Readers that are far behind are disconnected in the end; all their memory is freed.
        for reader in readers:
            reader.close()
        eventually(lambda: metrics(chatty_server)["heddle_http_streams"] == 0)
        eventually(lambda: metrics(chatty_server)["heddle_http_connections"] <= 2)
        comes_to_rest(chatty_server)
