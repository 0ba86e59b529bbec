"""heddle doctor finds rows that cannot be decoded, and reports only on what it checks."""

import sqlite3
import subprocess

import httpx
import pytest
from plain import human
from server import Server, binary

pytestmark = pytest.mark.beyond_peer("has no such command")

DAMAGE = {
    "checkpoints": "UPDATE checkpoints SET metadata = '{\"step\": 1'",
    "checkpoint": "UPDATE checkpoints SET checkpoint = substr(checkpoint, 1, length(checkpoint) - 3)",
    "writes": "UPDATE writes SET value = x'ff' || substr(value, 2)",
    "runs": "UPDATE runs SET body = replace(body, '\"', '')",
    "thread_info": "UPDATE thread_info SET body = substr(body, 2)",
    "assistants": "UPDATE assistants SET body = body || '}'",
    "event_pages": "UPDATE event_pages SET data = substr(data, 1, length(data) - 1)",
    "items": "UPDATE items SET value = value || ','",
}


def doctor(server: Server) -> subprocess.CompletedProcess:
    command = [str(binary()), "doctor", "--store", f"sqlite:{server.folder}/heddle.db"]
    return subprocess.run(
        command, env=server.environment(), cwd=server.folder, capture_output=True, text=True, check=False
    )


@pytest.fixture(scope="module")
def stopped():
    """A stopped server whose store has a row in every table of these tests."""
    server = Server()
    try:
        server.start()
        with httpx.Client(base_url=server.url, timeout=60) as http:
            thread = http.post("/threads", json={}).json()["thread_id"]
            body = {"assistant_id": "echo", "input": human("hello"), "stream_resumable": True}
            http.post(f"/threads/{thread}/runs/wait", json=body).raise_for_status()
            http.post("/assistants", json={"graph_id": "echo"}).raise_for_status()
            http.put("/store/items", json={"namespace": ["a"], "key": "k", "value": {"a": 1}}).raise_for_status()
        server.stop()
        yield server
    finally:
        server.remove()


def test_an_undamaged_database_is_ok_and_the_text_names_the_coverage(stopped):
    found = doctor(stopped)
    assert found.returncode == 0, found.stdout + found.stderr
    assert "values of all checkpoints and writes match their checksums" in found.stdout
    assert "rows can be decoded; rows have no checksums" in found.stdout


@pytest.mark.parametrize("damage", DAMAGE)
def test_a_row_that_cannot_be_decoded_is_found(stopped, damage):
    path = stopped.folder / "heddle.db"
    sound = path.read_bytes()
    try:
        with sqlite3.connect(path) as database:
            if not database.execute(DAMAGE[damage]).rowcount:
                pytest.skip("nothing of it is stored")
        database.close()
        found = doctor(stopped)
        assert found.returncode == 1 and "FAIL" in found.stdout, found.stdout
        if damage != "checkpoint" and damage != "writes":  # those are values too
            assert f"table {damage}" in found.stdout
    finally:
        for file in stopped.folder.glob("heddle.db-*"):
            file.unlink()
        path.write_bytes(sound)
