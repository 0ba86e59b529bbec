"""A store of the previous schema version is upgraded when it is opened: it keeps its data, and new
features work."""

import sqlite3
import subprocess
import time

import httpx
import pytest
from load import eventually, is_usable
from plain import human, texts
from postgres import Postgres, PostgresServer
from server import ROOT, Server, binary

pytestmark = pytest.mark.beyond_peer("keeps its data in memory")

OLD_STORE = ROOT / "tests/data/store-5.sql"  # written by a program of that version
ROOM_TABLES = ("cascades", "contents", "ids", "mentions", "messages", "reads", "runs")
NEW_TABLES = (
    *("holds", "lines", "outbox", "room", "run_slots", "servers", "thread_texts", "thread_words"),
    *(f"room_{name}" for name in ROOM_TABLES),
)
NEW_VIEWS = ("chat_messages", "message_runs")
LATEST_TABLES = tuple(name for name in NEW_TABLES if name.startswith("room"))  # of the current version
NEW_INDEXES = ("checkpoints_backward", "thread_info_by_updated")
TALK, TITLED, ASKED = (f"11111111-1111-4111-8111-11111111111{number}" for number in (1, 2, 3))
TURNS = ("Warp and weft", "A second turn")


def run(http: httpx.Client, thread: str, graph: str, text: str) -> None:
    body = {"assistant_id": graph, "input": human(text), "stream_resumable": True}
    http.post(f"/threads/{thread}/runs/wait", json=body).raise_for_status()


def fill(server: Server) -> None:
    """Stores what the file of the old version holds."""
    with httpx.Client(base_url=server.url, timeout=60) as http:
        for thread, metadata in ((TALK, {}), (TITLED, {"title": "The blue scarf"}), (ASKED, {})):
            http.post("/threads", json={"thread_id": thread, "metadata": metadata}).raise_for_status()
        for text in TURNS:
            run(http, TALK, "echo", text)
        run(http, ASKED, "approval", "Shall I?")
        http.put("/store/items", json={"namespace": ["a"], "key": "k", "value": {"a": 1}}).raise_for_status()


@pytest.fixture
def old_sqlite():
    server = Server()
    with sqlite3.connect(server.folder / "heddle.db") as database:
        database.executescript(OLD_STORE.read_text())
        # The events have the age of the file: without a new time the server removes them.
        database.execute("UPDATE event_pages SET created_at = ?", (time.time_ns() // 1000,))
    database.close()
    try:
        yield server
    finally:
        server.remove()


@pytest.fixture
def old_postgres():
    """A database that this version fills, without the tables and columns that are new in it."""
    with Postgres() as postgres:
        server = PostgresServer(postgres)
        try:
            fill(server.start())
            server.stop()
            for table in NEW_TABLES:
                server.sql(f"SET client_min_messages = error; DROP TABLE {table} CASCADE")
            for index in NEW_INDEXES:
                server.sql(f"DROP INDEX {index}")
            server.sql("UPDATE schema_version SET version = 5")
            yield server
        finally:
            server.remove()


def check_what_was_there(http: httpx.Client) -> None:
    history = http.get(f"/threads/{TALK}/history", params={"limit": 100}).json()
    assert [state["metadata"]["step"] for state in history] == [4, 3, 2, 1, 0, -1]
    said = [text for turn in TURNS for text in (turn, f"You said: {turn}")]
    assert texts(history[0]["values"]) == texts(http.get(f"/threads/{TALK}/state").json()["values"]) == said
    runs = http.get(f"/threads/{TALK}/runs").json()
    assert [each["status"] for each in runs] == ["success", "success"]
    stream = http.get(f"/threads/{TALK}/runs/{runs[0]['run_id']}/stream", headers={"Last-Event-ID": "-1"})
    assert "event: values" in stream.text and "A second turn" in stream.text
    assert http.get("/store/items", params={"namespace": "a", "key": "k"}).json()["value"] == {"a": 1}


def search(http: httpx.Client, **body) -> dict[str, str | None]:
    answer = http.post("/threads/search", json={"select": ["thread_id", "label"], **body})
    return {each["thread_id"]: each["label"] for each in answer.json()}


def check_what_is_new(http: httpx.Client) -> None:
    eventually(lambda: search(http, text="weft") == {TALK: TURNS[0]})
    assert search(http, text="second turn you said") == {TALK: TURNS[0]}
    assert list(search(http, text="scarf")) == [TITLED]
    assert search(http, ids=[TALK, ASKED]) == {TALK: TURNS[0], ASKED: "Shall I?"}
    page = http.post("/threads/search", json={"sort_by": "updated_at", "limit": 1})
    assert page.headers["x-pagination-total"] == "3"


def check_that_it_goes_on(http: httpx.Client) -> None:
    assert http.get(f"/threads/{ASKED}").json()["status"] == "interrupted"
    # The line of its agent is made from the thread's record, when another agent gets one.
    http.post(f"/threads/{ASKED}/runs/wait", json={"assistant_id": "echo", "input": human("Hello")})
    record = http.get(f"/threads/{ASKED}").json()
    assert record["status"] == "interrupted" and len(record["interrupts"]) == 1
    body = {"assistant_id": "approval", "command": {"resume": "yes"}}
    answer = http.post(f"/threads/{ASKED}/runs/wait", json=body)
    assert texts(answer.json())[-1] == "Approved: yes"
    assert http.get(f"/threads/{ASKED}").json()["status"] == "idle"
    is_usable(http, TALK)


def check_upgrade(server: Server) -> None:
    with httpx.Client(base_url=server.start().url, timeout=60) as http:
        check_what_was_there(http)
        check_what_is_new(http)
        check_that_it_goes_on(http)
    server.stop()
    command = [str(binary()), "doctor", "--store", server.store]
    found = subprocess.run(
        command, env=server.environment(), cwd=server.folder, capture_output=True, text=True, check=False
    )
    assert found.returncode == 0, found.stdout + found.stderr


def test_a_sqlite_file_of_the_version_before_is_upgraded(old_sqlite):
    check_upgrade(old_sqlite)
    with sqlite3.connect(old_sqlite.folder / "heddle.db") as database:
        names = {name for (name,) in database.execute("SELECT name FROM sqlite_schema")}
        assert database.execute("PRAGMA user_version").fetchone() > (5,)
    assert names >= {*NEW_TABLES, *NEW_VIEWS, *NEW_INDEXES}


def test_a_postgresql_schema_of_the_version_before_is_upgraded(old_postgres):
    check_upgrade(old_postgres)
    names = old_postgres.sql("SELECT relname FROM pg_class WHERE relnamespace = current_schema()::regnamespace").split()
    assert set(names) >= {*NEW_TABLES, *NEW_VIEWS, *NEW_INDEXES}
    assert int(old_postgres.sql("SELECT version FROM schema_version")) > 5


def test_tables_are_added_to_a_store_of_the_latest_version_but_one():
    """Its lease is acquired before."""
    with Postgres() as postgres, PostgresServer(postgres) as server:
        fill(server)
        server.stop()
        for table in LATEST_TABLES:
            server.sql(f"SET client_min_messages = error; DROP TABLE {table} CASCADE")
        server.sql("UPDATE schema_version SET version = version - 1")
        older = int(server.sql("SELECT version FROM schema_version"))
        check_upgrade(server)
        names = server.sql("SELECT relname FROM pg_class WHERE relnamespace = current_schema()::regnamespace").split()
        assert set(names) >= set(LATEST_TABLES)
        assert int(server.sql("SELECT version FROM schema_version")) == older + 1
