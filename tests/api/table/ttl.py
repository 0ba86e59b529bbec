"""Lifetimes: items, threads and stored events that expire, and those that do not."""

import contextlib
import functools
import sqlite3
import time

import httpx
import pytest
from load import at_pace
from plain import Thread, events, human, texts
from server import Server
from table import refused

pytestmark = pytest.mark.beyond_peer("knows no ttl")
SHORT = 0.01  # minutes: 600 ms, for things that must expire
USED = 0.1  # 6 s, for things that must not expire during the test


@contextlib.contextmanager
def serving(*options):
    with Server.create(options=list(options)) as server:
        with httpx.Client(base_url=server.url, timeout=60) as http:
            yield server, http


def until(check):
    deadline = time.monotonic() + 60
    while not (found := check()):
        assert time.monotonic() < deadline
        time.sleep(0.05)
    return found


def while_used(attempt):
    """Runs a test of something with the lifetime USED; retries if it expired on a slow machine."""

    @functools.wraps(attempt)
    def test():
        at_pace(USED * 60, attempt)

    del test.__wrapped__  # otherwise pytest looks for a fixture called `pace`
    return test


def rows(server, table) -> int:
    """Counts the rows of the database, visible or not."""
    with contextlib.closing(sqlite3.connect(f"file:{server.folder}/heddle.db?mode=ro", uri=True)) as database:
        return database.execute(f"SELECT count(*) FROM {table}").fetchone()[0]


def put(http, key, **more):
    answer = http.put("/store/items", json={"namespace": ["n"], "key": key, "value": {"key": key}, **more})
    assert answer.status_code == 204, answer.text


def get(http, key, **more):
    return http.get("/store/items", params={"namespace": "n", "key": key, **more}).json()


# ---- items


@while_used
def test_items_have_the_configured_time(pace):
    with serving("--ttl-items", str(USED)) as (server, http):
        pace()
        put(http, "own", ttl=60)
        put(http, "standard too", ttl=None)
        put(http, "standard")
        assert get(http, "standard", refresh_ttl=False)
        pace()
        until(lambda: get(http, "standard", refresh_ttl=False) is None)
        until(lambda: rows(server, "items") == 1)
        assert get(http, "own")["value"] == {"key": "own"}


@while_used
def test_reading_is_a_use(pace):
    with serving() as (_, http):
        pace()
        for key in ("alone", "searched", "k"):
            put(http, key, ttl=USED)
        for _ in range(15):
            time.sleep(0.5)
            assert get(http, "k") is not None
            found = http.post("/store/items/search", json={"filter": {"key": "searched"}}).json()["items"]
            assert [item["key"] for item in found] == ["searched"]
            pace()
        assert get(http, "alone") is None


@while_used
def test_reading_is_not_a_use_when_configured(pace):
    with serving("--no-ttl-refresh-on-read") as (_, http):
        pace()
        put(http, "kept", ttl=USED)
        put(http, "k", ttl=USED)

        def gone():
            assert get(http, "kept", refresh_ttl=True) is not None  # unless requested
            pace()
            return get(http, "k") is None

        until(gone)


@while_used
def test_an_item_that_has_expired_is_new_again(pace):
    with serving("--ttl-sweep-interval", "0") as (server, http):
        pace()
        put(http, "k", ttl=USED)
        first = get(http, "k", refresh_ttl=False)
        pace()
        until(lambda: get(http, "k", refresh_ttl=False) is None)
        assert rows(server, "items") == 1  # the sweeper is off
        assert http.post("/store/items/search", json={}).json() == {"items": []}
        put(http, "k")
        assert get(http, "k")["created_at"] > first["created_at"]


# ---- threads


def gone(http, thread):
    return http.get(f"/threads/{thread}").status_code == 404


def test_threads_have_the_configured_time():
    with serving("--ttl-threads", str(SHORT)) as (server, http):
        made = Thread(http)
        by_run = "11111111-1111-4111-8111-111111111111"
        body = {"assistant_id": "echo", "input": human("hi"), "if_not_exists": "create"}
        assert http.post(f"/threads/{by_run}/runs/wait", json=body).status_code == 200
        lasting, for_ever = Thread(http, ttl=60), Thread(http, ttl=0)
        shown = http.get(f"/threads/{made.id}", params={"include": "ttl"})
        until(lambda: gone(http, made.id) and gone(http, by_run))
        assert shown.status_code == 404 or shown.json()["ttl"]["ttl"] == SHORT
        until(lambda: rows(server, "thread_info") == 2 and rows(server, "runs") == 0)
        until(lambda: rows(server, "checkpoints") == rows(server, "threads") == 0)
        assert lasting.record()["status"] == for_ever.record()["status"] == "idle"


def test_stateless_threads_that_are_kept_have_it_too():
    with serving("--ttl-threads", str(SHORT)) as (server, http):
        body = {"assistant_id": "echo", "input": human("hi"), "on_completion": "keep"}
        assert http.post("/runs/wait", json=body).status_code == 200
        until(lambda: rows(server, "thread_info") == 0)


def test_a_busy_thread_stays():
    with serving("--ttl-threads", str(SHORT)) as (server, http):
        # The thread is busy from its first moment on: between two requests it might expire.
        path = "/threads/22222222-2222-4222-8222-222222222222"
        body = {"assistant_id": "nap", "input": {"ms": 600_000}, "if_not_exists": "create"}
        run = http.post(f"{path}/runs", json=body).json()["run_id"]
        other = Thread(http)
        until(lambda: rows(server, "thread_info") == 1 and gone(http, other.id))
        assert http.get(path).json()["status"] == "busy"
        assert http.post(f"{path}/runs/{run}/cancel?wait=1").status_code == 200
        until(lambda: rows(server, "thread_info") == 0)


@while_used
def test_use_makes_a_thread_live_longer(pace):
    with serving() as (_, http):
        pace()
        other, thread = Thread(http, ttl=USED), Thread(http, ttl=USED)
        for number in range(14):
            time.sleep(0.5)
            thread.say("echo", str(number))
            pace()
        assert len(texts(thread.state()["values"])) == 28 and gone(http, other.id)


@while_used
def test_nothing_runs_on_a_thread_that_has_expired(pace):
    with serving("--ttl-sweep-interval", "0") as (_, http):
        pace()
        thread, again = Thread(http, ttl=USED), Thread(http, ttl=USED)
        for each in (thread, again):
            each.say("echo", "before")
        pace()
        until(lambda: gone(http, thread.id) and gone(http, again.id))
        body = {"assistant_id": "echo", "input": human("after")}
        refused(http, "POST", thread.path("/runs"), 404, f"Thread with ID {thread.id} not found", json=body)
        made = again.ask("POST", again.path("/runs/wait"), json={**body, "if_not_exists": "create"})
        assert texts(made) == ["after", "You said: after"]  # without earlier messages
        assert len(again.ask("GET", again.path("/runs"))) == 1


def test_keep_latest_keeps_the_latest_state():
    with serving("--ttl-strategy", "keep_latest", "--ttl-threads", str(SHORT)) as (_, http):
        thread = Thread(http)
        for number in range(3):
            thread.say("echo", str(number))
        until(lambda: len(thread.history()) == 1)
        assert texts(thread.state()["values"])[-1] == "You said: 2"
        assert texts(thread.say("echo", "more"))[-2:] == ["more", "You said: more"]
        until(lambda: len(thread.history()) == 1)  # and again
        assert len(texts(thread.state()["values"])) == 8


def test_streams_of_a_thread_that_went_end():
    with serving() as (server, http):
        thread = Thread(http, ttl=SHORT)
        with http.stream("GET", thread.path("/stream")) as stream:
            until(lambda: rows(server, "thread_info") == 0)
            with contextlib.suppress(httpx.ReadError, httpx.RemoteProtocolError):
                stream.read()


# ---- events


def test_stored_events_end_with_their_time():
    with serving("--stream-retention-minutes", str(SHORT)) as (server, http):
        thread = Thread(http)
        body = {"assistant_id": "echo", "input": human("hi"), "stream_resumable": True, "stream_mode": "values"}
        told = http.post(thread.path("/runs/stream"), json=body)
        path = told.headers["content-location"] + "/stream"
        until(lambda: rows(server, "event_pages") == 0)
        server.stop()
        server.restart()
        again = http.get(path, headers={"Last-Event-ID": "-1"})
        assert again.status_code == 200 and len(events(again.text)) < len(events(told.text))
        assert texts(thread.state()["values"]) == ["hi", "You said: hi"]


def test_stored_events_are_kept_until_then(own_server):
    with httpx.Client(base_url=own_server.url, timeout=60) as http:
        thread = Thread(http)
        body = {"assistant_id": "echo", "input": human("hi"), "stream_resumable": True, "stream_mode": "values"}
        told = http.post(thread.path("/runs/stream"), json=body)
        other = Thread(http, ttl=SHORT)
        until(lambda: gone(http, other.id) and rows(own_server, "thread_info") == 1)  # swept
        own_server.stop()
        own_server.restart()
        again = http.get(told.headers["content-location"] + "/stream", headers={"Last-Event-ID": "-1"})
        assert events(again.text) == events(told.text)
