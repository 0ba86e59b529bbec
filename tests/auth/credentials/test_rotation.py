"""A new principal key beside the old one: no user loses data, and a user who is being moved must
wait."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import sqlite3
import struct

import pytest
from programs import wait_for
from secured import PRINCIPAL_KEY

NEW_KEY = "ffeeddccbbaa99887766554433221100fedcba9876543210fedcba9876543210"
OLD = {"id": "2026", "env": "TEST_PRINCIPAL_KEY"}
NEW = {"id": "2027", "env": "NEW_PRINCIPAL_KEY"}


def rows(server) -> dict[str, tuple]:
    """Maps a subject to (principal, key, state)."""
    with sqlite3.connect(f"file:{server.folder}/heddle.db?mode=ro", uri=True) as database:
        found = database.execute("SELECT subject, principal, key_id, state FROM principals").fetchall()
    return {subject: rest for subject, *rest in ([text(row[0]), text(row[1]), text(row[2]), row[3]] for row in found)}


def text(value) -> str:
    return value.decode() if isinstance(value, bytes) else value


def set_state(server, principal: str, state: int) -> None:
    with sqlite3.connect(server.folder / "heddle.db", timeout=60) as database:
        changed = database.execute(
            "UPDATE principals SET state = ?, rev = rev + 1 WHERE principal = ?", (state, principal)
        )
        assert changed.rowcount == 1


def restart_with(server, **auth) -> None:
    server.stop()
    config = json.loads(server.config_file.read_text())
    config["auth"] = {name: value for name, value in (config["auth"] | auth).items() if value is not None}
    server.config_file.write_text(json.dumps(config))
    server.start()


@pytest.fixture
def server(secured):
    return secured(env={"NEW_PRINCIPAL_KEY": NEW_KEY})


def derived(key: str, alias: str, subject: str) -> str:
    """Derives the principal as docs/authentication.md describes."""
    parts = (struct.pack(">I", len(part)) + part for part in (alias.encode(), subject.encode()))
    digest = hmac.new(bytes.fromhex(key), b"lgp/1\0" + b"".join(parts), hashlib.sha256).digest()
    return base64.urlsafe_b64encode(digest[:16]).decode().rstrip("=")


def test_principals_are_as_documented(server):
    thread = server.ask("POST", "/threads", token=server.user("Zoë"), json={})["thread_id"]
    principal = derived(PRINCIPAL_KEY, "main", "Zoë")
    assert rows(server)["Zoë"][0] == principal
    with sqlite3.connect(f"file:{server.folder}/heddle.db?mode=ro", uri=True) as database:
        found = database.execute("SELECT principal FROM thread_info WHERE thread_id = ?", (thread,)).fetchall()
    assert [text(row[0]) for row in found] == [principal]


def test_existing_users_keep_their_principal(server):
    alice = server.user("alice")
    thread = server.ask("POST", "/threads", token=alice, json={})["thread_id"]
    before = rows(server)
    assert before["alice"][1:] == ["2026", 0]
    restart_with(server, key=NEW, old_keys=[OLD])
    assert server.ask("GET", f"/threads/{thread}", token=alice)["thread_id"] == thread
    other = server.ask("POST", "/threads", token=server.user("bob"), json={})["thread_id"]
    after = rows(server)
    assert after["alice"] == before["alice"]
    assert after["bob"][1:] == ["2027", 0]
    # Without the old key, before `heddle rekey`, the threads of its principals are hidden; they
    # reappear with the key.
    restart_with(server, key=NEW, old_keys=None)
    server.ask("GET", f"/threads/{thread}", 404, token=alice)
    assert server.ask("GET", f"/threads/{other}", token=server.user("bob"))["thread_id"] == other


def test_a_key_can_come_later(server):
    """Principals without a key belong to the key `null`."""
    restart_with(server, key=None)
    alice = server.user("alice")
    thread = server.ask("POST", "/threads", token=alice, json={})["thread_id"]
    assert rows(server)["alice"][1] == ""
    restart_with(server, key=NEW, old_keys=[None])
    assert server.ask("GET", f"/threads/{thread}", token=alice)["thread_id"] == thread


def test_users_being_moved_have_to_wait(server):
    alice, bob = server.user("alice"), server.user("bob")
    server.ask("POST", "/threads", token=alice, json={})
    restart_with(server, key=NEW, old_keys=[OLD])
    server.ask("POST", "/threads/count", token=alice, json={})
    principal = rows(server)["alice"][0]
    set_state(server, principal, 1)

    def waits() -> bool:
        with server.client(alice) as http:
            answer = http.post("/threads/count", json={})
        assert answer.status_code in (200, 503)
        if answer.status_code == 503:
            assert int(answer.headers["retry-after"]) > 0
        return answer.status_code == 503

    # A cached credential is accepted for a few seconds more.
    wait_for(waits, what="the door to be closed")
    server.ask("POST", "/threads/count", token=bob, json={})
    # Moved: from now on the principal of the new key is used.
    set_state(server, principal, 2)
    server.ask("POST", "/threads/count", token=alice, json={})
    with sqlite3.connect(f"file:{server.folder}/heddle.db?mode=ro", uri=True) as database:
        found = database.execute(
            "SELECT key_id, state FROM principals WHERE subject = 'alice' ORDER BY key_id"
        ).fetchall()
    assert [(text(key), state) for key, state in found] == [("2026", 2), ("2027", 0)]


def test_organisations_are_principals(server):
    server.ask("POST", "/threads/count", token=server.main.member("alice", "red", "blue"), json={})
    assert set(rows(server)) == {"alice", "red", "blue"}
    assert PRINCIPAL_KEY.encode() not in server.database()
