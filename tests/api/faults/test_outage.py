"""A store that is down, locked or full for a while: runs wait and continue; no work is lost or done
twice."""

import contextlib
import sqlite3
from concurrent.futures import ThreadPoolExecutor

import httpx
import pytest
from gate import Gate
from load import eventually
from plain import Thread, events
from postgres import Postgres, PostgresServer
from server import Server

pytestmark = pytest.mark.beyond_peer("keeps its data in memory")

WAITS = "writes wait for up to"


@pytest.fixture(scope="module")
def postgres():
    with Postgres() as running:
        yield running


@contextlib.contextmanager
def stopped(postgres):
    postgres.stop()
    yield
    postgres.start()


@contextlib.contextmanager
def frozen(postgres):
    postgres.freeze()
    yield
    postgres.thaw()


@contextlib.contextmanager
def locked(server: Server):
    """Another process holds the write lock."""
    database = sqlite3.connect(f"{server.folder}/heddle.db", timeout=60, isolation_level=None)
    database.execute("BEGIN IMMEDIATE")
    yield
    database.execute("ROLLBACK")
    database.close()


class ImpatientServer(Server):
    """Its store timeout is one second."""

    def command(self) -> list[str]:
        command = super().command()
        command[command.index("--store") + 1] = f"sqlite:{self.folder}/heddle.db?timeout=1"
        return command


SAID = "one two three four five six seven eight nine ten"
LOGS = [[], ["before"], ["before", "through"], *[["before", "through", "after"]] * 2]


class Story:
    """A run that reaches its gate before the outage, one queued behind it, and one of another agent
    of the thread that executes at the same time."""

    def __init__(self, server: Server, http: httpx.Client, gate: Gate, durability: str):
        self.server, self.http, self.gate = server, http, gate
        self.thread = Thread(http)
        modes = ["messages-tuple", "values"]
        body = gate.body(stream_resumable=True, stream_mode=modes, durability=durability)
        self.first = self.create(**body)
        count = {"assistant_id": "loop", "input": {"count": 0}, "stream_resumable": True}
        line = self.thread.ask("GET", self.thread.path("/agents"))[0]["checkpoint_ns"]
        self.second = self.create(**count, config={"configurable": {"checkpoint_ns": line}})
        self.other = self.create(**count)
        eventually(lambda: gate.arrived)

    def create(self, **body) -> str:
        return self.thread.ask("POST", self.thread.path("/runs"), json=body)["run_id"]

    def meets_the_outage(self) -> None:
        self.gate.open()
        eventually(lambda: WAITS in self.server.log.read_text())
        answer = self.http.post("/threads", json={})
        assert answer.status_code == 503, answer.text
        assert int(answer.headers["retry-after"]) > 0

    def joined(self, run: str) -> dict:
        return self.http.get(self.thread.path(f"/runs/{run}/join"), timeout=120).json()

    def events(self, run: str) -> list[tuple]:
        path = self.thread.path(f"/runs/{run}/stream")
        answer = self.http.get(
            path, headers={"Last-Event-ID": "-1"}, params={"stream_mode": ["messages-tuple", "values"]}
        )
        assert answer.status_code == 200, answer.text
        return events(answer.text)

    def ends_well(self) -> None:
        runs = (self.first, self.second, self.other)
        self.joined(self.first)
        assert self.joined(self.second)["count"] == self.joined(self.other)["count"] == 5
        for run in runs:
            assert self.http.get(self.thread.path(f"/runs/{run}")).json()["status"] == "success"
        assert self.gate.arrived == 1, "a side effect happened twice"
        seen = [self.events(run) for run in runs]
        self.are_complete(*seen)
        # Read from the database alone.
        self.server.kill()
        self.server.restart()
        again = [self.events(run) for run in runs]
        self.are_complete(*again)
        # An `end` whose new number was not stored yet has its first one.
        assert [run[:-1] for run in again] == [run[:-1] for run in seen]

    def are_complete(self, first: list[tuple], second: list[tuple], other: list[tuple]) -> None:
        """No event is missing, and no number is used twice. A number may be left out: see
        docs/design/event-log.md."""
        for run in (first, second, other):
            assert (run[0][0], run[-1][0], run[-1][1]["status"]) == ("metadata", "end", "success"), run
            numbers = [int(number) for *_, number in run]
            assert numbers == sorted(numbers)
        numbers = [number for run in (first, second, other) for *_, number in run]
        assert len(set(numbers)) == len(numbers)
        assert "".join(data[0]["content"] for name, data, _ in first if name == "messages") == SAID
        assert [data["log"] for name, data, _ in first if name == "values"] == LOGS
        assert int(second[0][2]) > int(first[-1][2]), "a run that began before its turn"
        for run in (second, other):
            assert [data["count"] for name, data, _ in run if name == "values"] == [0, 1, 2, 3, 4, 5]


def tell(server: Server, outage, durability: str) -> None:
    with Gate() as gate, server, httpx.Client(base_url=server.url, timeout=60) as http:
        story = Story(server, http, gate, durability)
        with outage:
            story.meets_the_outage()
        story.ends_well()


@pytest.mark.parametrize(("outage", "durability"), [(stopped, "async"), (frozen, "sync")])
def test_runs_outlast_an_outage_of_postgresql(postgres, outage, durability):
    tell(PostgresServer(postgres, timeout=1), outage(postgres), durability)


def test_runs_outlast_a_database_file_that_is_locked():
    server = ImpatientServer()
    tell(server, locked(server), "async")


def test_a_run_waits_for_the_store_no_longer_than_it_may():
    with Gate() as gate, ImpatientServer(options=["--outage-timeout", "1"]) as server:
        with httpx.Client(base_url=server.url, timeout=60) as http:
            story = Story(server, http, gate, "sync")
            with locked(server), ThreadPoolExecutor() as pool:
                joined = pool.submit(story.joined, story.first)
                gate.open()
                assert joined.result()["__error__"]["error"]
            assert eventually(lambda: story.thread.record()["status"] != "busy")


def test_a_server_ends_on_sigterm_while_the_store_is_away():
    with Gate() as gate, ImpatientServer() as server, httpx.Client(base_url=server.url, timeout=60) as http:
        story = Story(server, http, gate, "async")
        with locked(server):
            story.meets_the_outage()
            server.stop()
        server.restart()
        assert story.joined(story.first)["log"][:3] == LOGS[-1]  # the second run may have added to it
