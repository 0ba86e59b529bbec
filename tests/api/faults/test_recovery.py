"""Recovery after a crash or a stop: ends of runs, events, and runs that resume."""

import contextlib
import json
import sqlite3

import httpx
import pytest
from listener import Listener
from load import eventually
from plain import Thread, events, human
from server import Server

pytestmark = pytest.mark.beyond_peer("keeps its data in memory")


@pytest.fixture
def http(own_server):
    with httpx.Client(base_url=own_server.url, timeout=60) as client:
        yield client


def crash(server) -> None:
    server.kill()
    server.restart()


def start(thread: Thread, assistant: str, **body) -> str:
    return thread.ask("POST", thread.path("/runs"), json={"assistant_id": assistant, **body})["run_id"]


def join(thread: Thread, run: str):
    return thread.ask("GET", thread.path(f"/runs/{run}/join"))


def record(thread: Thread, run: str) -> dict:
    return thread.ask("GET", thread.path(f"/runs/{run}"))


def stored_events(thread: Thread, run: str) -> list[tuple]:
    """Returns all events of the run, as a client that starts at -1 reads them."""
    return events(thread.http.get(thread.path(f"/runs/{run}/stream"), headers={"Last-Event-ID": "-1"}).text)


def pages(server, run: str) -> int:
    """Returns how many pages of the run's events are stored."""
    with contextlib.closing(sqlite3.connect(server.folder / "heddle.db", timeout=60)) as database:
        return database.execute("SELECT count(*) FROM event_pages WHERE run_id = ?", (run,)).fetchone()[0]


def names(found: list[tuple]) -> list[str]:
    return [name for name, _, _ in found]


@contextlib.contextmanager
def conflicting_ends(server):
    """Makes each batch that changes a thread and a run conflict. Other batches of the same commit
    are stored."""
    with contextlib.closing(sqlite3.connect(server.folder / "heddle.db", timeout=60)) as database:
        database.execute(
            "CREATE TRIGGER conflict BEFORE INSERT ON thread_info BEGIN UPDATE runs SET rev = rev + 1; END"
        )
        yield
        database.execute("DROP TRIGGER conflict")


def test_a_stored_end_event_implies_a_stored_end():
    """If `end` could be read before the run's record is durable, another attempt could follow it."""
    server = Server.create(options=["--stream-retention-events", "100000000"])
    with server, httpx.Client(base_url=server.url, timeout=60) as http:
        thread = Thread(http)
        run = start(thread, "nap", input={"ms": 1000}, stream_resumable=True)
        with conflicting_ends(server):
            eventually(lambda: "is not stored yet" in server.log.read_text())
            server.kill()
        server.restart()
        join(thread, run)
        found = stored_events(thread, run)
        assert [data["attempt"] for name, data, _ in found if name == "metadata"] == [1, 2]
        assert names(found).count("end") == 1 and names(found)[-1] == "end"
        assert record(thread, run)["status"] == "success"


def test_a_crash_wipes_no_stored_events(own_server, http):
    """A crash leaves a gap in the event ids that is wider than the number of retained events."""
    thread = Thread(http)
    before = start(thread, "echo", input=human("one"), stream_resumable=True)
    join(thread, before)
    kept = stored_events(thread, before)
    assert names(kept)[0] == "metadata" and names(kept)[-1] == "end"
    through = start(thread, "nap", input={"ms": 2000}, stream_resumable=True)
    eventually(lambda: pages(own_server, through))
    crash(own_server)
    join(thread, through)
    found = stored_events(thread, through)
    assert stored_events(thread, before) == kept
    assert [data["attempt"] for name, data, _ in found if name == "metadata"] == [1, 2]
    crash(own_server)
    assert stored_events(thread, before) == kept and stored_events(thread, through) == found


def test_many_short_runs_keep_their_events(own_server, http):
    """Each run has its own page; the limit counts events, not pages."""
    thread = Thread(http)
    runs = []
    for number in range(300):
        runs.append(start(thread, "echo", input=human(str(number)), stream_resumable=True))
        join(thread, runs[-1])
    crash(own_server)
    for run in runs[0], runs[150], runs[-1]:
        assert names(stored_events(thread, run))[-1] == "end"


@pytest.fixture
def staged_server(tmp_path):
    """A server with a graph of six slow steps."""
    names = [f"stage{number}" for number in range(6)]
    graph = {
        "name": "staged",
        "state": {"log": {"reducer": "add", "type": "list"}},
        "nodes": {name: {"kind": "sleep", "ms": 500, "update": {"log": [name]}} for name in names},
        "edges": [list(edge) for edge in zip(["__start__", *names], [*names, "__end__"])],
    }
    file = tmp_path / "staged.json"
    file.write_text(json.dumps(graph))
    server = Server.create(graphs={"staged": file})
    try:
        yield server.start()
        server.stop()
    finally:
        server.remove()


def test_a_run_that_makes_progress_survives_any_number_of_crashes(staged_server):
    with httpx.Client(base_url=staged_server.url, timeout=60) as http:
        thread = Thread(http)
        run = start(thread, "staged", input={"log": []}, durability="sync")
        for stages in range(1, 5):
            eventually(lambda: len((thread.state()["values"] or {}).get("log", [])) >= stages)
            crash(staged_server)
        assert join(thread, run)["log"] == [f"stage{number}" for number in range(6)]
        assert record(thread, run)["status"] == "success"


def test_an_orderly_stop_does_not_count_as_a_loss(own_server, http):
    """Stops are not counted as attempts; three crashes in the same step are, also with stops
    between them."""
    thread = Thread(http)
    run = start(thread, "nap", input={"ms": 600_000}, stream_resumable=True)
    for end in (own_server.stop, own_server.stop, own_server.kill, own_server.stop, own_server.kill, own_server.stop):
        eventually(lambda: thread.state()["next"] == ["sleep"])
        end()
        own_server.restart()
        assert record(thread, run)["status"] == "running"
    own_server.kill()
    own_server.restart()
    assert record(thread, run)["status"] == "error"
    assert "three times in the same step" in str(thread.record()["error"])
    attempts = [data["attempt"] for name, data, _ in stored_events(thread, run) if name == "metadata"]
    assert attempts == sorted(set(attempts))
    assert names(stored_events(thread, run))[-2:] == ["error", "end"]
    assert stored_events(thread, run)[-1][1]["status"] == "error"


@pytest.mark.parametrize("is_temporary", [False, True], ids=["thread", "stateless"])
def test_a_run_that_is_given_up_sends_its_webhook(own_server, http, is_temporary):
    with Listener() as listener:
        path = "/runs" if is_temporary else Thread(http).path("/runs")
        body = {"assistant_id": "nap", "input": {"ms": 600_000}, "webhook": f"{listener.url}/end"}
        run = http.post(path, json=body).json()
        for _ in range(3):
            eventually(lambda: http.get(f"/threads/{run['thread_id']}/state").json()["next"] == ["sleep"])
            crash(own_server)
        got = listener.next()["body"]
        assert (got["run_id"], got["status"]) == (run["run_id"], "error")
        assert "three times in the same step" in got["error"]
        assert http.get(f"/threads/{run['thread_id']}").status_code == (404 if is_temporary else 200)
