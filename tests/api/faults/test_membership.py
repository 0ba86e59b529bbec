"""Servers that share a store in PostgreSQL: joining, leaving, the leader, and servers that die."""

import contextlib
import json
import os
import signal
import subprocess
import time

import httpx
import pytest
from load import eventually, metrics
from postgres import Postgres, PostgresServer
from server import Server, binary

pytestmark = pytest.mark.beyond_peer("serves alone")

KEY = "a key that only the tests know: 0123456789"
LEASE = 2


@pytest.fixture(scope="module")
def postgres():
    with Postgres() as running:
        yield running


class ClusterServer(PostgresServer):
    """Like PostgresServer, but joins the servers of its schema."""

    def __init__(self, postgres: Postgres, schema: str | None = None, lease: float = LEASE):
        super().__init__(postgres, options=["--cluster-lease", str(lease)])
        if schema:
            self.store = self.store.replace(self.schema, schema)
            self.schema = schema
        self.options += ["--cluster-address", self.url]

    def environment(self) -> dict[str, str]:
        return {**super().environment(), "HEDDLE_CLUSTER_KEY": KEY}

    def listed(self) -> dict[str, dict]:
        """The output of `heddle servers` by address."""
        command = [binary(), "servers", self.store, "--json"]
        done = subprocess.run(command, env=super().environment(), capture_output=True, text=True, timeout=120)
        assert done.returncode == 0, done.stderr
        return {server["address"]: server for server in json.loads(done.stdout)}

    def is_leader(self) -> bool:
        return metrics(self)["heddle_cluster_leader"] == 1

    def sees(self, count: int) -> bool:
        return metrics(self)["heddle_cluster_servers"] == count

    def pretend_other_host(self) -> None:
        """No server can see by the process that another one has ended."""
        self.sql("""UPDATE servers SET body =
            convert_to(replace(convert_from(body, 'UTF8'), '"boot":"', '"boot":"other-'), 'UTF8')""")


@pytest.fixture
def cluster(postgres):
    """Starts servers of one schema."""
    started = []

    def start(count: int = 1, **arguments) -> list[ClusterServer]:
        schema = started[0].schema if started else None
        for _ in range(count):
            server = ClusterServer(postgres, schema, **arguments)
            schema = server.schema
            started.append(server)
            server.start()
        for server in started:
            if server.process is not None:
                eventually(lambda: server.sees(sum(other.process is not None for other in started)))
        return started

    try:
        yield start
        for server in started:
            server.stop()
    finally:
        for server in started:
            server.remove()


def ends_with(server: Server, status: int) -> str:
    assert eventually(lambda: server.process.poll() is not None)
    assert server.process.returncode == status
    server.process = None
    return server.log.read_text()


def refused(server: Server) -> str:
    """Starts a server that must fail, and returns its output."""
    done = subprocess.run(
        server.command(), cwd=server.folder, env=server.environment(),
        capture_output=True, text=True, timeout=120,
    )  # fmt: skip
    assert done.returncode == 1, done.stdout + done.stderr
    return done.stderr


def test_servers_join_and_are_listed_with_one_leader(cluster):
    servers = cluster(3)
    listed = servers[0].listed()
    assert sorted(listed) == sorted(server.url for server in servers)
    assert {one["state"] for one in listed.values()} == {"alive"}
    assert {one["pid"] for one in listed.values()} == {server.process.pid for server in servers}
    assert sorted(one["role"] for one in listed.values()) == ["leader", "member", "member"]
    assert listed[servers[0].url]["role"] == "leader"
    assert [server.is_leader() for server in servers] == [True, False, False]


def test_a_server_that_stops_leaves_and_another_leads(cluster):
    first, second = cluster(2)
    first.stop()
    eventually(second.is_leader)
    eventually(lambda: second.sees(1))
    assert list(second.listed()) == [second.url]
    second.stop()
    assert second.holders() == ""


def test_a_killed_process_of_this_host_is_noticed_at_once(cluster):
    first, second = cluster(2, lease=60)
    first.kill()
    eventually(second.is_leader, 30)
    assert "whose process has ended" in second.log.read_text()
    first.restart()
    eventually(lambda: second.sees(2))
    assert not first.is_leader()


def test_a_killed_server_of_another_host_is_replaced_after_its_lease(cluster):
    first, second, third = cluster(3)
    first.pretend_other_host()
    first.kill()
    eventually(lambda: second.is_leader() + third.is_leader() == 1)
    eventually(lambda: second.sees(2) and third.sees(2))
    assert "which has not renewed its lease" in second.log.read_text() + third.log.read_text()


def test_a_paused_server_is_replaced_and_ends(cluster):
    first, second = cluster(2)
    os.kill(first.process.pid, signal.SIGSTOP)
    try:
        eventually(second.is_leader)
    finally:
        os.kill(first.process.pid, signal.SIGCONT)
    log = ends_with(first, 1)
    assert "another server has removed this one from the cluster; this server stops" in log
    assert second.sees(1)


def test_an_outage_of_the_database_removes_no_server(cluster, postgres):
    servers = cluster(2)
    postgres.freeze()
    try:
        for server in servers:
            eventually(lambda: metrics(server)["heddle_cluster_lease_in_doubt"] == 1)
            assert httpx.get(server.url + "/health", timeout=60).status_code == 503
            assert httpx.get(server.url + "/ok?check_db=true", timeout=60).status_code == 500
        assert not any(server.is_leader() for server in servers)
        time.sleep(2 * LEASE)
    finally:
        postgres.thaw()
    for server in servers:
        eventually(lambda: metrics(server)["heddle_cluster_lease_in_doubt"] == 0)
        assert eventually(lambda: httpx.get(server.url + "/health", timeout=60).status_code == 200)
    time.sleep(2 * LEASE)
    assert [server.is_leader() for server in servers] == [True, False]
    assert all(server.sees(2) for server in servers)


def test_a_server_that_wants_the_store_alone_is_refused(cluster, postgres):
    first, second = cluster(2)
    alone = PostgresServer(postgres)
    alone.store = first.store
    try:
        said = refused(alone)
        assert f"it is in use by the server at {first.url} (process {first.process.pid} on " in said
        assert "and others; set cluster.address and cluster.key to join them" in said
        # Also while there is no leader.
        os.kill(first.process.pid, signal.SIGSTOP)
        assert "set cluster.address and cluster.key" in refused(alone)
    finally:
        os.kill(first.process.pid, signal.SIGCONT)
        alone.remove()
    eventually(lambda: first.process.poll() is not None or second.sees(2))
    with contextlib.suppress(AssertionError):
        ends_with(first, 1)


def test_a_store_that_a_server_uses_alone_cannot_be_joined(postgres):
    alone = PostgresServer(postgres)
    joiner = ClusterServer(postgres, alone.schema)
    try:
        alone.start()
        said = refused(joiner)
        assert f"it is in use by the server at http://localhost:{alone.port} " in said
        assert "which has no cluster.address and uses it alone" in said
        assert joiner.listed()[f"http://localhost:{alone.port}"]["role"] == "alone"
        alone.stop()
        joiner.start()
        joiner.stop()
        alone.start()
        alone.kill()
        joiner.start()
        assert "whose process has ended" in joiner.log.read_text()
        joiner.kill()
        alone.start()
        alone.stop()
        assert alone.holders() == ""
    finally:
        alone.remove()
        joiner.remove()


def test_a_store_for_one_server_is_refused():
    server = Server(options=["--cluster-address", "http://127.0.0.1:1", "--cluster-key", KEY])
    try:
        assert "this store is for one server only" in refused(server)
    finally:
        server.remove()


def test_the_server_of_a_file_is_listed(own_server):
    command = [binary(), "servers", own_server.store]
    done = subprocess.run(command, env=own_server.environment(), capture_output=True, text=True)
    assert done.returncode == 0
    assert f"alone   alive   http://localhost:{own_server.port} " in done.stdout
    assert f"process {own_server.process.pid} on " in done.stdout
    own_server.kill()
    done = subprocess.run(command, env=own_server.environment(), capture_output=True, text=True)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "no servers\n")
    own_server.restart()
