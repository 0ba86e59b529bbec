"""Only one server at a time uses a store: a second one fails and names the one that holds it."""

import contextlib
import json
import os
import signal
import sqlite3
import stat
import subprocess

import httpx
import pytest
from load import eventually
from plain import Thread
from postgres import Postgres, PostgresServer
from server import Server, binary, free_port

pytestmark = pytest.mark.beyond_peer("keeps its data in memory")


@pytest.fixture(scope="module")
def postgres():
    with Postgres() as running:
        yield running


@pytest.fixture(params=["sqlite", "postgresql"])
def running(request, postgres):
    with Server() if request.param == "sqlite" else PostgresServer(postgres) as server:
        yield server


def second(server: Server, command: str = "serve") -> subprocess.Popen:
    """Returns the same command with another port."""
    arguments = server.command()
    arguments[1] = command
    arguments[arguments.index("--port") + 1] = str(free_port())
    return subprocess.Popen(
        arguments, cwd=server.folder, env=server.environment(),
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
    )  # fmt: skip


def is_refused(server: Server, process: subprocess.Popen) -> str:
    text, _ = process.communicate(timeout=120)
    assert process.returncode == 1, text
    assert f"in use by the server at http://localhost:{server.port} (process {server.process.pid} on " in text, text
    return text


def says_hello(server: Server) -> None:
    with httpx.Client(base_url=server.url, timeout=60) as http:
        assert Thread(http).say("echo", "hello")["messages"]


@pytest.mark.parametrize("command", ["serve", "dev"])
def test_a_second_server_is_refused_with_the_address_of_the_first(running, command):
    assert f"heddle {command}: " in is_refused(running, second(running, command))
    says_hello(running)


def set_version(server: Server, change: int = 0) -> int:
    """The version of the store's schema, after a change."""
    if isinstance(server, PostgresServer):
        server.sql(f"UPDATE schema_version SET version = version + {change}")
        return int(server.sql("SELECT version FROM schema_version"))
    with contextlib.closing(sqlite3.connect(server.folder / "heddle.db")) as database:
        [version] = database.execute("PRAGMA user_version").fetchone()
        database.execute(f"PRAGMA user_version = {version + change}")
        return version + change


def test_a_refused_server_does_not_upgrade_the_store(running):
    older = set_version(running, -1)
    is_refused(running, second(running))
    assert set_version(running) == older
    says_hello(running)
    set_version(running, +1)


def test_after_a_crash_the_next_start_works_at_once(running):
    says_hello(running)
    before = len(running.log.read_text())
    running.kill()
    running.restart()
    assert "waiting up to" not in running.log.read_text()[before:]
    says_hello(running)


def test_a_store_that_was_closed_is_free(running):
    running.stop()
    if isinstance(running, PostgresServer):
        assert running.holders() == ""
    else:
        assert not list(running.folder.glob("*-server"))
    running.restart()


def test_a_lease_holds_behind_a_pooler_of_connections(postgres):
    if not postgres.bouncer_url:
        pytest.skip("PgBouncer is not installed")
    with PostgresServer(postgres, postgres.bouncer_url) as server:
        is_refused(server, second(server))


def test_a_link_to_the_file_leads_to_the_same_lock(own_server):
    (own_server.folder / "elsewhere").mkdir()
    (own_server.folder / "elsewhere" / "link.db").symlink_to("../heddle.db")
    arguments = [binary(), "serve", "--port", str(free_port()), "--store", "sqlite:elsewhere/link.db"]
    process = subprocess.Popen(
        arguments, cwd=own_server.folder, env=own_server.environment(),
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
    )  # fmt: skip
    is_refused(own_server, process)


def test_the_lock_file_is_private_and_other_commands_work_beside_a_server(own_server):
    lock = own_server.folder / "heddle.db-server"
    assert stat.S_IMODE(lock.stat().st_mode) == 0o600
    store = f"sqlite:{own_server.folder}/heddle.db"
    done = subprocess.run(
        [binary(), "doctor", "--store", store], env=own_server.environment(), capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout + done.stderr
    with contextlib.suppress(FileNotFoundError):
        assert json.loads(lock.read_text())["pid"] == own_server.process.pid


def test_a_lease_from_another_host_is_waited_out(postgres):
    server = PostgresServer(postgres)
    try:
        server.start()
        server.kill()
        server.sql("""UPDATE servers SET body =
            convert_to(replace(convert_from(body, 'UTF8'), '"boot":"', '"boot":"other-'), 'UTF8')""")
        server.restart()
        assert "waiting up to 10 s to see whether it is alive" in server.log.read_text()
        assert "which has not renewed its lease" in server.log.read_text()
        server.stop()
    finally:
        server.remove()


def test_a_paused_server_that_lost_the_store_ends_and_writes_nothing(postgres):
    server = PostgresServer(postgres)
    try:
        server.start()
        says_hello(server)
        os.kill(server.process.pid, signal.SIGSTOP)
        server.sql("""UPDATE servers SET token = token + 1, body = '{"address":"http://other:1"}'""")
        threads = server.sql("SELECT count(*) FROM thread_info")
        os.kill(server.process.pid, signal.SIGCONT)
        assert eventually(lambda: server.process.poll() is not None)
        assert server.process.returncode == 1
        assert "the server at http://other:1 has taken over the store; this server stops" in server.log.read_text()
        assert server.sql("SELECT count(*) FROM thread_info") == threads
        assert "other:1" in server.holders()
    finally:
        server.remove()
