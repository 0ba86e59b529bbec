"""Servers that join a store, and those that are refused."""

import os
import signal
import subprocess

import pytest
from cluster import KEY
from load import eventually
from plain import human, texts
from programs import clean_environment
from server import binary, free_port


def command(store: str, *options: str, **env: str) -> subprocess.CompletedProcess:
    """Runs `heddle serve`, which is expected to end by itself."""
    arguments = [str(binary()), "serve", "--port", str(free_port()), "--store", store, *options]
    return subprocess.run(
        arguments, env=clean_environment() | env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        timeout=120, check=False,
    )  # fmt: skip


def listed(cluster) -> str:
    """What `heddle servers` prints."""
    arguments = [str(binary()), "servers", "--store", cluster.database]
    done = subprocess.run(arguments, env=clean_environment(), capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_joined_servers_are_listed(shared):
    rows = shared.rows()
    assert {row["address"] for row in rows.values()} == {each.address for each in shared.members}
    text = listed(shared)
    for each in shared.members:
        assert each.address in text, text


def test_servers_that_end_are_no_longer_listed(cluster):
    servers = cluster(size=3)
    a, b, c = servers.members
    c.stop()
    servers.size_becomes(2, 10)
    assert c.address not in listed(servers)
    b.kill()
    servers.size_becomes(1)
    assert servers.leader() == a and b.address not in listed(servers)
    c.revive()
    servers.size_becomes(2, 10)


def test_the_end_of_the_leader_makes_another_one_the_leader(cluster):
    servers = cluster(size=3)
    first = servers.leader()
    first.kill()
    second = eventually(lambda: (found := servers.leader()) != first and found)
    second.stop()
    third = eventually(lambda: (found := servers.leader()) not in (first, second) and found)
    assert texts(third.wait("echo", human("who leads?"))) == ["who leads?", "You said: who leads?"]


def test_a_server_that_wants_the_store_for_itself_is_refused(shared):
    done = command(shared.database)
    assert done.returncode == 1, done.stdout
    assert any(each.address in done.stdout for each in shared.members), done.stdout


def test_a_server_that_joins_is_refused_where_one_uses_the_store_alone(cluster):
    servers = cluster(size=1)
    [alone] = servers.members
    alone.stop()
    alone.joins = False
    alone.revive()
    address = f"http://127.0.0.1:{free_port()}"
    done = command(servers.database, "--cluster-address", address, HEDDLE_CLUSTER_KEY=KEY)
    assert done.returncode == 1, done.stdout
    assert f":{alone.port}" in done.stdout, done.stdout


ADDRESS = "http://127.0.0.1:4711"
REFUSED = {
    "sqlite": ("sqlite:heddle.db", ["--cluster-address", ADDRESS], {"HEDDLE_CLUSTER_KEY": KEY}),
    "memory": ("memory:", ["--cluster-address", ADDRESS], {"HEDDLE_CLUSTER_KEY": KEY}),
    "no key": (None, ["--cluster-address", ADDRESS], {}),
    "no address": (None, [], {"HEDDLE_CLUSTER_KEY": KEY}),
    "a short key": (None, ["--cluster-address", ADDRESS], {"HEDDLE_CLUSTER_KEY": "x" * 31}),
    "no URL": (None, ["--cluster-address", "a.example.com"], {"HEDDLE_CLUSTER_KEY": KEY}),
}


@pytest.mark.parametrize("why", REFUSED)
def test_settings_of_a_cluster_are_refused(why, postgres, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    store, options, env = REFUSED[why]
    done = command(store or f"{postgres.url}?schema=refused", *options, **env)
    assert done.returncode in (1, 2), done.stdout
    assert "cluster" in done.stdout.lower(), done.stdout
    assert KEY not in done.stdout


def test_the_metrics_count_the_servers_and_what_they_hold(shared, gate):
    a, *_ = shared.members
    for each in shared.members:
        eventually(lambda: each.metrics().get("heddle_cluster_servers") == 3)
    thread = a.thread()
    a.ask("POST", f"/threads/{thread}/runs", json=gate.body())
    eventually(lambda: gate.arrived)
    assert sum(each.metrics()["heddle_cluster_holds"] for each in shared.members) == 1
    gate.open()
    eventually(lambda: sum(each.metrics()["heddle_cluster_holds"] for each in shared.members) == 0)


def test_a_paused_server_is_not_ready_when_it_has_lost_its_place(cluster):
    servers = cluster(size=2)
    a, b = servers.members
    b.may_end = True
    b.pause()
    servers.size_becomes(1)
    os.kill(b.pid, signal.SIGCONT)
    b.is_paused = False
    eventually(b.has_ended)
    assert a.answers()
    b.revive()
    servers.size_becomes(2)
