"""Webhooks: content, time, number of deliveries, and forbidden targets."""

import contextlib
import hashlib
import hmac
import queue
import socket
import sqlite3
import threading
import time
import uuid
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import httpx
import pytest
from listener import Listener, closed_port
from plain import Thread, human, texts
from server import Server
from table import refused

pytestmark = pytest.mark.beyond_peer("knows no rules for webhooks")
SECRET = "a-secret-that-nobody-must-see"


@contextlib.contextmanager
def serving(*options, drain="10"):
    with Server.create(options=["--drain", drain, *options]) as server:
        with httpx.Client(base_url=server.url, timeout=60) as http:
            yield server, http


@contextlib.contextmanager
def answering(handle):
    """A server on which `handle` responds to a POST."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self):
            self.rfile.read(int(self.headers.get("Content-Length", 0)))
            handle(self)

        def log_message(self, *_):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()


def run(http, assistant="echo", thread=None, **body):
    thread = thread or Thread(http)
    body = {"assistant_id": assistant, "input": human("hi"), **body}
    return thread.ask("POST", thread.path("/runs"), json=body)


# ---- content


def test_the_run_and_how_it_ended(http):
    with Listener() as listener:
        thread = Thread(http)
        made = run(http, thread=thread, webhook=f"{listener.url}/a?b=c", metadata={"x": 1})
        sent = listener.next()
    assert sent["path"] == "/a?b=c" and sent["headers"]["Content-Type"] == "application/json"
    body = sent["body"]
    found = thread.ask("GET", thread.path(f"/runs/{made['run_id']}"))
    for name in (
        "run_id",
        "thread_id",
        "assistant_id",
        "created_at",
        "metadata",
        "kwargs",
        "multitask_strategy",
        "status",
    ):
        assert body[name] == found[name], name
    assert body["status"] == "success" and texts(body["values"]) == ["hi", "You said: hi"]
    assert body["created_at"] <= body["run_started_at"] <= body["run_ended_at"] <= body["webhook_sent_at"]
    assert "error" not in body
    assert "Heddle-Signature" not in sent["headers"]


def test_a_failure(http):
    with Listener() as listener:
        run(http, "failing", input={"log": []}, webhook=listener.url)
        body = listener.next()["body"]
    assert (body["status"], body["error"]) == ("error", "boom")


def test_an_interrupt(http):
    with Listener() as listener:
        thread = Thread(http)
        run(http, "approval", thread=thread, webhook=listener.url)
        body = listener.next()["body"]
    assert body["status"] == "success" and thread.record()["status"] == "interrupted"


@pytest.mark.parametrize("action", ["interrupt", "rollback"])
def test_one_that_was_stopped(http, action):
    with Listener() as listener:
        thread = Thread(http)
        first = run(http, "nap", thread=thread, input={"ms": 600_000}, webhook=f"{listener.url}/first")
        second = run(http, "nap", thread=thread, input={"ms": 600_000}, webhook=f"{listener.url}/second")
        for made, path in ((second, "/second"), (first, "/first")):  # one pending, one running
            http.post(thread.path(f"/runs/{made['run_id']}/cancel"), params={"action": action, "wait": 1})
            sent = listener.next()
            assert (sent["path"], sent["body"]["status"]) == (path, "interrupted")
            assert sent["body"]["run_id"] == made["run_id"]


@pytest.mark.parametrize("path", ["/runs", "/runs/wait", "/runs/stream"])
def test_stateless_runs(http, path):
    with Listener() as listener:
        body = {"assistant_id": "echo", "input": human("hi"), "webhook": listener.url}
        assert http.post(path, json=body).status_code == 200
        assert texts(listener.next()["body"]["values"]) == ["hi", "You said: hi"]


def test_a_path_is_of_this_server(http):
    """The body of a webhook is also that of a run: it starts one on another thread."""
    thread, other = Thread(http), Thread(http)
    run(http, "loop", thread=thread, input={"count": 4}, webhook=other.path("/runs"))
    deadline = time.monotonic() + 60
    while not (runs := other.ask("GET", other.path("/runs"))):
        assert time.monotonic() < deadline
        time.sleep(0.02)
    assert len(runs) == 1 and runs[0]["assistant_id"] == http.get("/assistants/loop").json()["assistant_id"]


def test_values_of_any_size(http):
    with Listener() as listener:
        text = "x" * 3_000_000
        run(http, input=human(text), webhook=listener.url)
        assert texts(listener.next()["body"]["values"])[0] == text


def test_many_at_once(http):
    with Listener() as listener:
        made = {run(http, webhook=listener.url)["run_id"] for _ in range(200)}
        assert {listener.next()["body"]["run_id"] for _ in made} == made


# ---- signatures


def test_the_secret_stays_one():
    with Listener() as listener, serving("--webhooks-secret", SECRET) as (server, http):
        run(http, webhook=listener.url)
        sent = listener.next()
        assert sent["headers"]["Heddle-Signature"].startswith("t=")
        assert SECRET not in str(sent) + http.get("/info").text + http.get("/openapi.json").text
        server.stop()
        assert SECRET not in server.log.read_text()


def test_a_signature_is_of_the_bytes():
    taken = queue.Queue()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self):
            body = self.rfile.read(int(self.headers["Content-Length"]))
            taken.put((self.headers["Heddle-Signature"], body))
            self.send_response(200)
            self.end_headers()

        def log_message(self, *_):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    with serving("--webhooks-secret", SECRET) as (_, http):
        run(http, webhook=f"http://127.0.0.1:{server.server_port}")
        header, body = taken.get(timeout=60)
    server.shutdown()
    server.server_close()
    parts = dict(part.split("=", 1) for part in header.split(","))
    assert set(parts) == {"t", "v1"}
    wanted = hmac.new(SECRET.encode(), parts["t"].encode() + b"." + body, hashlib.sha256).hexdigest()
    assert parts["v1"] == wanted


# ---- retries


@pytest.mark.parametrize("status", [408, 429, 500, 503])
def test_tried_again(http, status):
    with Listener(statuses=(status, 200)) as listener:
        run(http, webhook=listener.url)
        first, second = listener.next()["body"], listener.next()["body"]
    assert first["webhook_sent_at"] < second["webhook_sent_at"]
    assert {**first, "webhook_sent_at": None} == {**second, "webhook_sent_at": None}


def test_final_responses_are_not_retried():
    elsewhere = queue.Queue()

    def send_away(request):
        request.send_response(307)
        request.send_header("Location", away)
        request.end_headers()

    def arrived(request):
        elsewhere.put(request.path)
        request.send_response(200)
        request.end_headers()

    with answering(arrived) as away, answering(send_away) as redirecting:
        with Listener(statuses=(400,)) as refusing, serving() as (server, http):
            made = run(http, webhook=refusing.url)
            run(http, webhook=redirecting)
            assert refusing.next()["body"]["run_id"] == made["run_id"]
            deadline = time.monotonic() + 60
            while server.log.read_text().count("dropped") < 2:
                assert time.monotonic() < deadline
                time.sleep(0.02)
            server.stop()  # otherwise it would retry
            assert refusing.received.empty() and elsewhere.empty()
            assert "the status is 400" in server.log.read_text() and "the status is 307" in server.log.read_text()
            assert refusing.url not in server.log.read_text()  # it might contain a token


def test_no_more_attempts_than_configured():
    with Listener(statuses=(500,)) as listener, serving("--webhooks-retries", "0") as (server, http):
        run(http, webhook=listener.url)
        listener.next()
        server.stop()
        assert listener.received.empty() and "dropped" in server.log.read_text()


def test_an_unreachable_receiver(http):
    with socket.socket() as nobody:
        nobody.bind(("127.0.0.1", 0))
        made = run(http, webhook=f"http://127.0.0.1:{nobody.getsockname()[1]}")
        answer = http.get(f"/threads/{made['thread_id']}/runs/{made['run_id']}/join")
        assert texts(answer.json()) == ["hi", "You said: hi"]


# ---- shutdown


@pytest.fixture
def silence():
    """Accepts connections and never responds."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        yield listening


def test_the_end_does_not_wait_for_ever(silence):
    with serving(drain="0.2") as (server, http):
        run(http, webhook=f"http://127.0.0.1:{silence.getsockname()[1]}")
        silence.accept()
        server.stop()
        assert "1 webhooks were not delivered" in server.log.read_text()


def test_a_late_attempt_is_not_waited_for():
    with Listener(statuses=(503,)) as listener, serving(drain="0.1") as (server, http):
        run(http, webhook=listener.url)
        listener.next()
        server.stop()
        said = server.log.read_text()
        assert "not delivered" in said or "dropped" in said


def test_webhooks_in_flight_are_delivered():
    gate, arrived = threading.Event(), threading.Event()
    done = queue.Queue()

    def slowly(request):
        arrived.set()
        gate.wait(60)
        request.send_response(200)
        request.end_headers()
        done.put(request.path)

    with answering(slowly) as url, serving(drain="60") as (server, http):
        run(http, webhook=url)
        assert arrived.wait(60)
        threading.Timer(0.5, gate.set).start()
        server.stop()
        assert done.get(timeout=60) == "/"
        assert "not delivered" not in server.log.read_text()


# ---- the outbox


def eventually(check, seconds=60):
    deadline = time.monotonic() + seconds
    while not (found := check()):
        assert time.monotonic() < deadline
        time.sleep(0.02)
    return found


def waiting_rows(server):
    with contextlib.closing(sqlite3.connect(server.folder / "heddle.db")) as database:
        return database.execute("SELECT count(*) FROM outbox").fetchone()[0]


@pytest.fixture
def closed():
    with closed_port() as port:
        yield port


@pytest.mark.parametrize("is_temporary", [False, True], ids=["of a thread", "of a stateless run"])
def test_a_webhook_outlives_the_process(own_server, closed, is_temporary):
    with httpx.Client(base_url=own_server.url, timeout=60) as http:
        url = f"http://127.0.0.1:{closed}/hook"
        if is_temporary:
            body = {"assistant_id": "echo", "input": human("hi"), "webhook": url}
            assert http.post("/runs/wait", json=body).status_code == 200
        else:
            made = run(http, webhook=url)
            http.get(f"/threads/{made['thread_id']}/runs/{made['run_id']}/join")
    assert waiting_rows(own_server) == 1
    own_server.kill()
    with Listener(port=closed) as listener:
        own_server.restart()
        sent = listener.next()
        assert texts(sent["body"]["values"]) == ["hi", "You said: hi"] and sent["body"]["webhook_sent_at"]
        assert uuid.UUID(sent["headers"]["Webhook-Id"])
        eventually(lambda: waiting_rows(own_server) == 0)
        own_server.kill()
        own_server.restart()
        with httpx.Client(base_url=own_server.url, timeout=60) as http:
            run(http, webhook=f"{listener.url}/another")
        assert listener.next()["path"] == "/another"  # and not the first one again


def test_all_attempts_have_one_id_also_of_different_processes(own_server):
    with Listener(statuses=(500,)) as listener:
        with httpx.Client(base_url=own_server.url, timeout=60) as http:
            made = [run(http, webhook=listener.url)["run_id"] for _ in range(3)]
        first = [listener.next() for _ in made]
        own_server.kill()
        own_server.restart()
        again = [listener.next() for _ in made]
    ids = {sent["body"]["run_id"]: sent["headers"]["Webhook-Id"] for sent in first}
    assert set(ids) == set(made) and len(set(ids.values())) == 3
    assert all(ids[sent["body"]["run_id"]] == sent["headers"]["Webhook-Id"] for sent in again)


def test_webhooks_of_a_stopped_server_are_delivered_by_the_next(closed):
    server = Server.create(options=["--drain", "0.1"])
    try:
        server.start()
        with httpx.Client(base_url=server.url, timeout=60) as http:
            made = run(http, webhook=f"http://127.0.0.1:{closed}")
            http.get(f"/threads/{made['thread_id']}/runs/{made['run_id']}/join")
        server.stop()
        with Listener(port=closed) as listener:
            server.restart()
            assert listener.next()["body"]["run_id"] == made["run_id"]
        server.stop()
    finally:
        server.remove()


@pytest.mark.parametrize("what", ["", "/runs/{run_id}"], ids=["thread", "run"])
def test_webhooks_of_deleted_threads_are_not_sent(own_server, closed, what):
    with httpx.Client(base_url=own_server.url, timeout=60) as http:
        made = run(http, webhook=f"http://127.0.0.1:{closed}")
        http.get(f"/threads/{made['thread_id']}/runs/{made['run_id']}/join")
        assert waiting_rows(own_server) == 1
        assert http.delete(f"/threads/{made['thread_id']}" + what.format(**made)).status_code == 204
        assert waiting_rows(own_server) == 0
        own_server.kill()
        with Listener(port=closed) as listener:
            own_server.restart()
            run(http, webhook=f"{listener.url}/another")
            assert listener.next()["path"] == "/another"


def test_a_dropped_webhook_is_deleted_and_counted():
    with Listener(statuses=(400,)) as listener, serving() as (server, http):
        run(http, webhook=listener.url)
        listener.next()
        eventually(lambda: waiting_rows(server) == 0)
        eventually(lambda: "heddle_webhooks_dropped_total 1" in http.get("/metrics").text)
        assert "heddle_webhooks_pending 0" in http.get("/metrics").text


def test_more_than_are_loaded_at_once(own_server, closed):
    with httpx.Client(base_url=own_server.url, timeout=60) as http:
        made = [run(http, webhook=f"http://127.0.0.1:{closed}") for _ in range(40)]
        for each in made:
            http.get(f"/threads/{each['thread_id']}/runs/{each['run_id']}/join")
    own_server.kill()
    with Listener(port=closed) as listener:
        own_server.restart()
        assert {listener.next()["body"]["run_id"] for _ in made} == {each["run_id"] for each in made}
        eventually(lambda: waiting_rows(own_server) == 0)
        assert listener.received.empty()


# ---- rules


@pytest.mark.parametrize(
    "url, named",
    [
        ("ftp://example.com", "webhook"),
        ("example.com", "webhook"),
        ("//example.com", "webhook"),
        ("http://", "webhook"),
        ("http://user:password@example.com", "user"),
        ("http://exa mple.com", "webhook"),
        ("http://example.com/\n", "webhook"),
        ("javascript:alert(1)", "webhook"),
        ("http://example.com/" + "x" * 65536, "webhook"),
        (1, "webhook"),
        (["http://example.com"], "webhook"),
    ],
)
def test_invalid_urls(http, url, named):
    thread = Thread(http)
    for path in (thread.path("/runs"), thread.path("/runs/wait"), thread.path("/runs/stream"), "/runs", "/runs/wait"):
        refused(http, "POST", path, 422, named, json={"assistant_id": "echo", "input": human("hi"), "webhook": url})
    assert thread.record()["status"] == "idle" and http.get(thread.path("/runs")).json() == []


@pytest.mark.parametrize("nothing", [None, ""])
def test_none(http, nothing):
    assert run(http, webhook=nothing)["status"] == "pending"


@pytest.mark.parametrize(
    "option, wrong, right",
    [
        ("--webhooks-require-https", "http://example.com", "https://localhost:9"),
        ("--no-webhooks-allow-loopback", "http://127.0.0.1:9", None),
        ("--no-webhooks-allow-loopback", "http://localhost:9", None),
        ("--no-webhooks-allow-loopback", "http://[::1]:9", None),
        ("--no-webhooks-allow-loopback", "http://0x7f.1", None),
        ("--no-webhooks-allow-loopback", "/threads", None),
        ("--webhooks-allowed-domains=127.0.0.1,*.example.com", "http://example.org", "http://127.0.0.1:9"),
        ("--webhooks-allowed-ports=9", "http://127.0.0.1:10", "http://127.0.0.1:9"),
    ],
)
def test_disallowed_urls(option, wrong, right):
    with serving(option, drain="0.1") as (_, http):
        body = {"assistant_id": "echo", "input": human("hi"), "webhook": wrong}
        refused(http, "POST", Thread(http).path("/runs"), 422, "webhook", json=body)
        refused(http, "POST", "/runs/crons", 422, "webhook", json={**body, "schedule": "0 0 1 1 *"})
        if right:
            assert run(http, webhook=right)["status"] == "pending"


def test_identities_are_unique(http):
    """Each run is reported once: no webhook is delivered twice."""
    with Listener() as listener:
        thread = Thread(http)
        made = [run(http, thread=thread, webhook=f"{listener.url}/{uuid.uuid4()}") for _ in range(20)]
        sent = [listener.next() for _ in made]
    assert sorted(each["body"]["run_id"] for each in sent) == sorted(each["run_id"] for each in made)
    assert all(each["body"]["kwargs"]["webhook"].endswith(each["path"]) for each in sent)
