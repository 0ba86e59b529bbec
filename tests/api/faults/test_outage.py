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


class Story:
    """A run that reaches its gate before the outage, and one queued behind it on the same thread."""

    def __init__(self, server: Server, http: httpx.Client, gate: Gate, durability: str):
        self.server, self.http, self.gate = server, http, gate
        self.thread = Thread(http)
        modes = ["messages-tuple", "values"]
        body = gate.body(stream_resumable=True, stream_mode=modes, durability=durability)
        self.first = self.create(**body)
        self.second = self.create(assistant_id="loop", input={"count": 0}, multitask_strategy="enqueue")
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

    def events(self) -> list[tuple]:
        path = self.thread.path(f"/runs/{self.first}/stream")
        answer = self.http.get(
            path, headers={"Last-Event-ID": "-1"}, params={"stream_mode": ["messages-tuple", "values"]}
        )
        assert answer.status_code == 200, answer.text
        return events(answer.text)

    def ends_well(self) -> None:
        self.joined(self.first)
        assert self.joined(self.second)["count"] == 5
        for run in (self.first, self.second):
            assert self.http.get(self.thread.path(f"/runs/{run}")).json()["status"] == "success"
        assert self.gate.arrived == 1, "a side effect happened twice"
        seen = self.events()
        assert seen[-1][0] == "end" and seen[-1][1]["status"] == "success", seen[-1]
        assert [data for name, data, _ in seen if name == "values"][-1]["log"] == ["before", "through", "after"]
        numbers = [int(number) for *_, number in seen]
        assert numbers == list(range(numbers[0], numbers[0] + len(numbers))), numbers
        # Read from the database alone.
        self.server.kill()
        self.server.restart()
        assert self.events() == seen


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
        assert story.joined(story.first)["log"] == ["before", "through", "after"]
