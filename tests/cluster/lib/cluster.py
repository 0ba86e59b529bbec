"""Several servers on one PostgreSQL store, with everything around them that can break.

    with Postgres() as postgres, Cluster(postgres, graphs={…}) as cluster:
        a, b, c = cluster.members
        cluster.url                         # nginx, round robin over all of them
        a.kill(); a.pause(); a.go_on(); a.stop(); a.revive()
        cluster.cut_store(a); cluster.cut_peers(a, b); cluster.mend(a)

Each server reaches the database through a relay, and the others reach it through another one
(relay.py). A server ends by itself only after a fault that may have made it lose its place
(`may_end`); any other end fails the test.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import subprocess
import time
import uuid
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from urllib.parse import urlsplit

import httpx
from postgres import Postgres
from programs import Heddle, wait_for
from proxy import Nginx
from relay import Relays
from server import ROOT, build_folder, free_port

KEY = "the key that the servers of this test share"
LEASE = 3  # seconds
NAMES = "abcdefgh"
CLOCK = ROOT / "tests/runtime/lib/stepped_clock.c"


def with_port(url: str, port: int) -> str:
    """The URL of a database with another port."""
    parts = urlsplit(url)
    return parts._replace(netloc=parts.netloc.rpartition(":")[0] + f":{port}").geturl()


class Member(Heddle):
    """One server of a cluster; `clock` is the number of seconds that its clock is ahead."""

    def __init__(self, cluster: Cluster, name: str, **options):
        super().__init__(**options)
        self.cluster, self.name = cluster, name
        self.address = self.url  # before the relay is open
        self.joins = True
        self.may_end = False
        self.is_paused = False
        self.clock = 0

    def connect(self, relays: Relays, database: str) -> None:
        """Opens the relays of this server."""
        parts = urlsplit(database)
        self.store = with_port(database, relays.open(self.to_store, (parts.hostname, parts.port), free_port()))
        port = relays.open(self.to_self, ("127.0.0.1", self.port), free_port())
        self.address = f"http://127.0.0.1:{port}"

    @property
    def to_store(self) -> str:
        return f"from {self.name} to the database"

    @property
    def to_self(self) -> str:
        return f"to {self.name}"

    def command(self) -> list[str]:
        command = super().command()
        command[command.index("--store") + 1] = self.store
        return command

    def environment(self) -> dict[str, str]:
        env = super().environment()
        if self.joins:
            env["HEDDLE_CLUSTER_ADDRESS"], env["HEDDLE_CLUSTER_KEY"] = self.address, self.cluster.key
            env["HEDDLE_CLUSTER_LEASE"] = str(self.cluster.lease)
        if self.clock:
            env["LD_PRELOAD"], env["STEPPED_CLOCK"] = str(self.cluster.clock_library()), str(self.clock)
            # The sanitizer requires to be loaded first, which is not necessary here.
            env["ASAN_OPTIONS"] = "verify_asan_link_order=0:detect_leaks=0"
        return env

    # ---- faults -------------------------------------------------------

    @property
    def pid(self) -> int:
        return self.process.pid

    def is_up(self) -> bool:
        return self.process is not None and self.process.poll() is None

    def pause(self) -> None:
        """Everything stands still; connections stay open."""
        self.is_paused = True
        os.kill(self.pid, signal.SIGSTOP)

    def go_on(self) -> None:
        if self.is_paused:
            self.is_paused = False
            os.kill(self.pid, signal.SIGCONT)

    def kill(self) -> None:
        self.is_paused = False
        super().kill()

    def has_ended(self) -> bool:
        """Notices an end; one without a reason fails the test."""
        if self.process is None:
            return True
        status = self.process.poll()
        if status is None:
            return False
        self.check_log()
        assert self.may_end and status == 1, f"{self.name} ended with {status}\n{self.tail()}"
        self.process = None
        return True

    def revive(self, seconds: float = 120) -> None:
        """Starts, again and again while the database is away."""
        deadline = time.monotonic() + seconds
        while True:
            begun = time.monotonic()
            try:
                self.may_end = False
                self.start()
                return
            except RuntimeError:
                self.process = None
                assert self.cluster.database_was_away(begun), self.tail()
                assert time.monotonic() < deadline, self.tail()
                time.sleep(0.2)

    # ---- a second look --------------------------------------------------

    def logged(self, text: str) -> bool:
        return text in self.log.read_text(errors="replace")

    def metrics(self) -> dict[str, float]:
        lines = httpx.get(self.url + "/metrics", timeout=60).text.splitlines()
        pairs = (line.rsplit(" ", 1) for line in lines if line and not line.startswith("#"))
        return {name: float(value) for name, value in pairs}

    def in_flight(self) -> int:
        now = self.metrics()
        return int(now["heddle_runs_running"] + now["heddle_runs_pending"])


class Cluster:
    """size: servers. begin: how many of them start at once. clocks: seconds that each clock is ahead. bouncer: PgBouncer in transaction mode
    between the servers and PostgreSQL. member: the class of a server, or one for each. More options go
    to it."""

    def __init__(
        self,
        postgres: Postgres,
        size: int = 3,
        lease: float = LEASE,
        bouncer: bool = False,
        clocks: tuple[int, ...] = (),
        timeout: int = 3,
        member: type[Member] | list[type[Member]] = Member,
        begin: int | None = None,
        **options,
    ):
        self.postgres, self.lease, self.key = postgres, lease, KEY
        self.schema = f"cluster_{uuid.uuid4().hex[:16]}"
        self.database = f"{postgres.bouncer_url if bouncer else postgres.url}?schema={self.schema}&timeout={timeout}"
        kinds = member if isinstance(member, list) else [member] * size
        self.members = [kind(self, name, **options) for kind, name in zip(kinds, NAMES[:size])]
        self.begin = size if begin is None else begin
        for each, clock in zip(self.members, clocks):
            each.clock = clock
        self.relays, self.library = Relays(), None
        self.away: list[list[float]] = []  # [from, to] of each outage of the database
        self.nginx = Nginx([each.port for each in self.members])

    def __enter__(self) -> Cluster:
        self.relays.__enter__()
        try:
            for each in self.members:
                each.connect(self.relays, self.database)
            # The first one creates the tables.
            self.members[0].start()
            with ThreadPoolExecutor() as pool:
                list(pool.map(Heddle.start, self.members[1 : self.begin]))
            self.nginx.start()
        except BaseException:
            self.remove()
            raise
        return self

    def __exit__(self, kind, *_) -> None:
        try:
            if kind is None:
                self.stop()
            else:
                self.show_logs()
        finally:
            self.remove()

    def stop(self) -> None:
        """Every server must end in order, and leave nothing behind."""
        self.mend_all()
        for each in self.members:
            each.go_on()
        with ThreadPoolExecutor() as pool:
            list(pool.map(lambda each: each.has_ended() or each.stop(), self.members))
        for each in self.members:
            each.check_log()
        assert self.sql("SELECT count(*) FROM servers") == "0", self.rows()

    def remove(self) -> None:
        self.nginx.stop()
        for each in self.members:
            each.remove()
        self.relays.__exit__()
        if self.library:
            self.library.unlink()

    def show_logs(self) -> None:
        """Prints the ends of the logs, and keeps the whole beside the build."""
        folder = build_folder() / "cluster-logs"
        folder.mkdir(exist_ok=True)
        for each in filter(lambda member: member.log.exists(), self.members):
            kept = folder / f"{self.schema}-{each.name}.log"
            shutil.copy(each.log, kept)
            print(f"---- {kept}, {each.url}, {each.address}\n{each.tail(20)}")

    def clock_library(self) -> Path:
        if not self.library:
            self.library = self.members[0].folder.parent / f"{self.schema}.so"
            subprocess.run(["cc", "-shared", "-fPIC", "-o", self.library, CLOCK], check=True)
        return self.library

    @property
    def url(self) -> str:
        return self.nginx.url

    def up(self) -> list[Member]:
        return [each for each in self.members if each.is_up()]

    def others(self, *members: Member) -> list[Member]:
        return [each for each in self.members if each not in members]

    # ---- the database ---------------------------------------------------

    def sql(self, text: str) -> str:
        return self.postgres.sql(f"SET search_path TO {self.schema}; {text}")

    def rows(self) -> dict[str, dict]:
        """The rows of the joined servers, by id."""
        found = self.sql("SELECT convert_from(slot || ' ' || body, 'UTF8') FROM servers WHERE slot <> ''")
        return {line.split(" ", 1)[0]: json.loads(line.split(" ", 1)[1]) for line in found.splitlines()}

    def member_of(self, identity: str) -> Member | None:
        address = self.rows().get(identity, {}).get("address")
        return next((each for each in self.members if each.address == address), None)

    def holder(self, thread: str) -> Member | None:
        """The server that executes the runs of a thread."""
        server = self.sql(f"SELECT convert_from(server, 'UTF8') FROM holds WHERE thread_id = '{thread}' AND token <> 0")
        return self.member_of(server) if server else None

    def leader(self) -> Member | None:
        """None: it has just stopped, or is not one of ours."""
        body = self.sql("SELECT convert_from(body, 'UTF8') FROM servers WHERE slot = ''")
        address = json.loads(body)["address"] if body else None
        return next((each for each in self.members if each.address == address), None)

    def held(self) -> int:
        return int(self.sql("SELECT count(*) FROM holds WHERE token <> 0"))

    def size_becomes(self, count: int, seconds: float = 60) -> None:
        wait_for(lambda: len(self.rows()) == count, seconds, f"{count} servers in the table")

    def stop_database(self) -> None:
        self.away.append([time.monotonic(), float("inf")])
        self.postgres.stop()

    def start_database(self) -> None:
        self.postgres.start()
        self.away[-1][1] = time.monotonic()

    def database_was_away(self, since: float) -> bool:
        return any(until + 1 >= since for _, until in self.away)

    # ---- the network ----------------------------------------------------

    def cut_store(self, member: Member, breaks: bool = False) -> None:
        """The server reaches the database no more."""
        self.relays.cut(member.to_store, breaks)

    def cut_peers(self, one: Member, other: Member, breaks: bool = False) -> None:
        """Two servers reach each other no more."""
        self.relays.cut(one.to_self, breaks, [other.pid])
        self.relays.cut(other.to_self, breaks, [one.pid])

    def isolate(self, member: Member, breaks: bool = False) -> None:
        """No other server reaches this one."""
        self.relays.cut(member.to_self, breaks)

    def mend(self, *members: Member) -> None:
        for each in members:
            self.relays.mend(each.to_store)
            self.relays.mend(each.to_self)

    def mend_all(self) -> None:
        self.mend(*self.members)

    # ---- requests -------------------------------------------------------

    def comes_to_rest(self, seconds: float = 120) -> None:
        """Waits until no run is in flight on any server and no thread is busy or held."""

        def is_quiet() -> bool:
            with contextlib.suppress(httpx.TransportError):
                return not any(each.in_flight() for each in self.up())
            return False

        wait_for(is_quiet, seconds, "the end of all runs")
        wait_for(lambda: self.held() == 0, seconds, "the release of all threads")
        for each in self.up():
            assert each.ask("POST", "/threads/search", json={"status": "busy", "limit": 1000}) == []
