"""Large responses: refused before they are built, with a limit that fits, and bounded in total."""

import re
import socket
from pathlib import Path

import httpx
import pytest
from load import eventually, metrics
from plain import Thread
from server import Server

pytestmark = pytest.mark.beyond_peer("builds answers of any size")

TEXT = "a" * 100_000
MAX_ANSWER = 1 << 20


@pytest.fixture(scope="module")
def small_server():
    with Server(options=["--max-answer", "1m", "--answer-memory", "3m"]) as running:
        yield running


@pytest.fixture
def small(small_server):
    with httpx.Client(base_url=small_server.url, timeout=60) as client:
        yield client


def large_thread(http: httpx.Client, updates: int, text: str = TEXT) -> Thread:
    """Each update adds one message of 100,000 bytes and one checkpoint."""
    thread = Thread(http, metadata={"graph_id": "echo"})
    for number in range(updates):
        message = {"role": "user", "content": text, "id": str(number)}
        thread.ask("POST", thread.path("/state"), json={"values": {"messages": [message]}, "as_node": "reply"})
    return thread


def fitting_limit(answer: httpx.Response) -> int:
    assert answer.status_code == 422 and "max_answer" in answer.json()["detail"], answer.text
    return int(re.search(r"limit=(\d+) fits", answer.json()["detail"])[1])


def test_a_history_that_is_too_large_names_the_limit_that_fits(small):
    thread = large_thread(small, 8)
    fits = fitting_limit(small.get(thread.path("/history?limit=1000")))
    assert fits == 1  # 0.8 MB, and 0.7 MB of the state before it
    answer = small.get(thread.path(f"/history?limit={fits}"))
    assert answer.status_code == 200 and len(answer.json()) == fits and len(answer.content) < MAX_ANSWER
    assert fitting_limit(small.get(thread.path(f"/history?limit={fits + 1}"))) == fits
    assert fitting_limit(small.post(thread.path("/history"), json={"limit": 50})) == fits


def test_a_history_without_values_is_small(small):
    thread = large_thread(small, 8)
    answer = small.get(thread.path("/history?limit=1000&select=metadata"))
    assert answer.status_code == 200 and len(answer.json()) == 8


def test_a_state_that_is_too_large_is_refused_and_others_are_not(small):
    thread = large_thread(small, 12)
    for path in ("/state", ""):
        answer = small.get(thread.path(path))
        assert answer.status_code == 422 and "max_answer" in answer.json()["detail"]
    # Requests that do not return the values still work.
    assert len(thread.ask("GET", thread.path("/history?limit=100&select=metadata"))) == 12
    thread.ask("DELETE", thread.path(""), 204)


def test_a_search_with_values_names_the_limit_that_fits(small):
    threads = [large_thread(small, 4) for _ in range(4)]
    try:
        fits = fitting_limit(small.post("/threads/search", json={"limit": 1000}))
        assert 1 <= fits <= 2
        assert len(small.post("/threads/search", json={"limit": fits}).json()) == fits
        small.post("/threads/search", json={"limit": 1000, "select": ["thread_id"]}).raise_for_status()
        # Values that are only compared are not part of the response.
        found = small.post("/threads/search", json={"limit": 1000, "values": {"none": 1}})
        assert found.json() == []
    finally:
        for thread in threads:
            thread.ask("DELETE", thread.path(""), 204)


def peak_kib(server: Server) -> int:
    status = Path(f"/proc/{server.process.pid}/status").read_text()
    return int(re.search(r"VmHWM:\s+(\d+)", status)[1])


def test_the_defaults_refuse_a_history_of_large_states_without_building_it():
    """A state of 8 MiB and 24 checkpoints, 100 MB in total. The server used to build them, several
    times over."""
    with Server() as server, httpx.Client(base_url=server.url, timeout=60) as http:
        thread = large_thread(http, 24, "a" * (8 * MAX_ANSWER // 24))
        Path(f"/proc/{server.process.pid}/clear_refs").write_text("5")  # reset the peak memory use
        before = peak_kib(server)
        fits = fitting_limit(http.get(thread.path("/history?limit=1000")))
        assert fits == fitting_limit(http.post(thread.path("/history"), json={"limit": 1000})) > 1
        assert peak_kib(server) - before < 32 * 1024


def hold_answers(server: Server, http: httpx.Client) -> None:
    thread = large_thread(http, 1, "a" * 7_000_000)
    unread = []

    def is_refused() -> bool:
        client = socket.socket()
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        client.connect(("127.0.0.1", server.port))
        client.sendall(f"GET {thread.path('/state')} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
        unread.append(client)
        answer = http.get(thread.path("/state"))
        if answer.status_code == 200:
            return False
        assert answer.status_code == 503 and "answer_memory" in answer.json()["detail"]
        assert int(answer.headers["retry-after"]) > 0
        return True

    try:
        eventually(is_refused)
        assert http.get("/ok").status_code == 200
    finally:
        for client in unread:
            client.close()
    eventually(lambda: metrics(server)["heddle_http_answer_bytes"] == 0)
    assert http.get(thread.path("/state")).status_code == 200


def test_answers_that_are_not_read_count_until_they_are_sent():
    # Larger than the kernel's buffers for a response.
    with (
        Server(options=["--max-answer", "8m", "--answer-memory", "20m"]) as server,
        httpx.Client(base_url=server.url, timeout=60) as http,
    ):
        hold_answers(server, http)
