"""Other users of the machine and the network must not see the database file or paths."""

import contextlib
import os
import resource
import socket
import sqlite3
import stat

import httpx
import pytest
from load import eventually
from server import Server

pytestmark = pytest.mark.beyond_peer("keeps its data in memory")


def modes(server: Server) -> dict[str, int]:
    return {path.name: stat.S_IMODE(path.stat().st_mode) for path in server.folder.glob("heddle.db*")}


@pytest.fixture
def open_umask():
    """Files are world-readable unless the program restricts their mode."""
    before = os.umask(0o022)
    yield
    os.umask(before)


def test_a_new_database_is_readable_by_its_owner_only(open_umask):
    with Server() as server:
        httpx.post(server.url + "/threads", json={}, timeout=60).raise_for_status()
        found = modes(server)
        assert {"heddle.db", "heddle.db-wal", "heddle.db-shm"} <= set(found)
        assert set(found.values()) == {0o600}, found


def test_a_database_that_was_there_keeps_its_mode(open_umask):
    server = Server()
    try:
        with contextlib.closing(sqlite3.connect(server.folder / "heddle.db")) as made:
            made.execute("PRAGMA user_version")
        (server.folder / "heddle.db").touch()
        (server.folder / "heddle.db").chmod(0o640)
        server.start()
        assert modes(server)["heddle.db"] == 0o640
        server.stop()
    finally:
        server.remove()


def test_errors_do_not_name_the_database(own_server):
    folder = str(own_server.folder)
    (own_server.folder / "heddle.db").rename(own_server.folder / "moved.db")

    with httpx.Client(base_url=own_server.url, timeout=60) as http:
        answers = [
            http.post("/threads", json={}),
            http.post("/runs/wait", json={"assistant_id": "echo", "input": {}}),
            http.get("/health"),
            http.get("/ok?check_db=1"),
        ]
    assert any(answer.status_code >= 500 for answer in answers)
    for answer in answers:
        assert folder not in answer.text and "heddle.db" not in answer.text, answer.text
    (own_server.folder / "moved.db").rename(own_server.folder / "heddle.db")


class FewFiles(Server):
    def start(self) -> Server:
        super().start()
        resource.prlimit(self.process.pid, resource.RLIMIT_NOFILE, (64, 64))
        return self


def test_running_out_of_file_descriptors_is_logged():
    with FewFiles() as server, contextlib.ExitStack() as stack:
        for _ in range(80):
            client = stack.enter_context(socket.socket())
            client.connect(("127.0.0.1", server.port))
        eventually(lambda: "out of file descriptors" in server.log.read_text())
        stack.close()
        eventually(server.answers)
