"""SIGTERM with everything in progress: the server stops cleanly, and the next one resumes."""

import threading
from concurrent.futures import ThreadPoolExecutor

import httpx
import pytest
from gate import Gate
from load import STATES, comes_to_rest, eventually, metrics
from plain import texts
from server import Server

pytestmark = pytest.mark.beyond_peer("keeps its data in memory")

THREADS = 12
FOR_EVER = 600_000  # ms: these runs do not end before the server stops


@pytest.fixture
def hasty_server():
    running = Server(options=["--drain", "1"])
    try:
        yield running.start()
        running.stop()
    finally:
        running.remove()


@pytest.fixture
def patient_server():
    """A server with a long timeout for requests in progress."""
    running = Server(options=["--drain", "100"])
    try:
        yield running.start()
        running.stop()
    finally:
        running.remove()


def in_background(answers: list, url: str, path: str, body: dict) -> threading.Thread:
    """Runs a client in a thread; appends its response to `answers`."""

    def ask() -> None:
        try:
            with httpx.Client(base_url=url, timeout=600) as http, http.stream("POST", path, json=body) as answer:
                answers.append((answer.status_code, answer.read()))
        except httpx.TransportError as error:
            answers.append((0, str(error)))

    thread = threading.Thread(target=ask)
    thread.start()
    return thread


def runs_of(http: httpx.Client, thread: str) -> list[dict]:
    return http.get(f"/threads/{thread}/runs").json()[::-1]


def test_the_next_server_continues(hasty_server):
    with httpx.Client(base_url=hasty_server.url, timeout=60) as http:
        threads = [http.post("/threads", json={}).json()["thread_id"] for _ in range(THREADS)]
        answers: list = []
        clients = []
        for number, thread in enumerate(threads):
            # A long run with a client that waits or streams, and two runs queued behind it.
            kind = ("wait", "stream")[number % 2]
            body = {"assistant_id": "nap", "input": {"ms": FOR_EVER}, "on_disconnect": "cancel",
                    "durability": ("sync", "async", "exit")[number % 3]}  # fmt: skip
            clients.append(in_background(answers, hasty_server.url, f"/threads/{thread}/runs/{kind}", body))
        eventually(lambda: metrics(hasty_server)["heddle_runs_running"] == THREADS)
        for thread in threads:
            for ms in (1, 2):
                body = {"assistant_id": "nap", "input": {"ms": ms}}
                assert http.post(f"/threads/{thread}/runs", json=body).status_code == 200
        # Both runs end while the server stops. The pending run is cancelled first: the end of the
        # long run starts the next.
        long, queued, _ = runs_of(http, threads[0])
        for run in (queued, long):
            http.post(f"/threads/{threads[0]}/runs/{run['run_id']}/cancel")
        hasty_server.stop()
        for client in clients:
            client.join()
        hasty_server.restart()
        # The clients did not disconnect, so only the runs that the test cancelled are cancelled.
        for thread in threads[1:]:
            assert [run["status"] for run in runs_of(http, thread)] == ["running", "pending", "pending"]
        for thread in threads[1:]:
            first = runs_of(http, thread)[0]
            assert http.post(f"/threads/{thread}/runs/{first['run_id']}/cancel?wait=true").status_code == 200
        comes_to_rest(hasty_server)
        for thread in threads:
            expected = ["interrupted", "interrupted" if thread == threads[0] else "success", "success"]
            assert [run["status"] for run in runs_of(http, thread)] == expected
            log = http.get(f"/threads/{thread}/state").json()["values"]["log"]
            assert log[-len(STATES) :] == list(STATES)


def test_answers_under_way_are_completed(patient_server):
    """With enough time, clients receive complete responses."""
    with Gate() as gate, httpx.Client(base_url=patient_server.url, timeout=60) as http, ThreadPoolExecutor() as pool:
        threads = [http.post("/threads", json={}).json()["thread_id"] for _ in range(THREADS)]
        answers: list = []
        body = gate.body(stream_mode=["values"])
        clients = [
            in_background(answers, patient_server.url, f"/threads/{thread}/runs/{kind}", body)
            for thread, kind in zip(threads, ("wait", "stream") * (THREADS // 2), strict=True)
        ]
        eventually(lambda: gate.arrived == THREADS)
        stopping = pool.submit(patient_server.stop)
        eventually(lambda: not patient_server.answers())  # the stop has begun
        gate.open()
        stopping.result()
        for client in clients:
            client.join()
        assert [status for status, _ in answers] == [200] * THREADS, answers
        assert all(b"nine ten" in content for _, content in answers)
        patient_server.restart()
        for thread in threads:
            assert texts(http.get(f"/threads/{thread}/state").json()["values"])[-1].endswith("nine ten")
