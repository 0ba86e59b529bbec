"""A deleted thread leaves nothing in the bytes of the database."""

from __future__ import annotations

from pathlib import Path

import pytest
from moving import ECHO, conversation, make_thread, say
from programs import wait_for
from sql import is_sqlite, psql, sqlite_file

# Short and random enough not to be compressed, long enough not to occur by chance.
CANARY = "Zq7-Canary-xW9Kp2-unmistakable"


def stored_bytes(server) -> bytes:
    """Returns all bytes of the database's files, or all its rows; the server has stopped."""
    if is_sqlite(server.store):
        file = sqlite_file(server.store)
        return b"".join(path.read_bytes() for path in sorted(file.parent.glob(f"{file.name}*")))
    tables = psql(server.store, "SELECT tablename FROM pg_tables WHERE schemaname = current_schema()").split()
    return b"".join(psql(server.store, f"SELECT t::text FROM {table} AS t").encode() for table in tables)


def holds_canary(data: bytes) -> bool:
    """Searches for the text itself and for PostgreSQL's form of bytes."""
    return CANARY.encode() in data or CANARY.encode().hex().encode() in data


def table_files(server) -> bytes:
    """Returns the files of PostgreSQL's tables and indexes, after it has rewritten them."""
    tables = psql(server.store, "SELECT tablename FROM pg_tables WHERE schemaname = current_schema()").split()
    for table in tables:
        psql(server.store, f"VACUUM FULL {table}")
    psql(server.store, "CHECKPOINT")
    folder = Path(psql(server.store, "SHOW data_directory").strip())
    found = b""
    for table in tables:
        names = psql(
            server.store, f"SELECT pg_relation_filepath(oid) FROM pg_class WHERE oid = '{table}'::regclass "
            f"OR oid = (SELECT reltoastrelid FROM pg_class WHERE oid = '{table}'::regclass AND reltoastrelid <> 0) "
            f"OR oid IN (SELECT indexrelid FROM pg_index WHERE indrelid = '{table}'::regclass)",
        )  # fmt: skip
        for name in filter(None, names.split()):
            for path in folder.glob(f"{name}*"):
                found += path.read_bytes()
    return found


def compact(server) -> None:
    """Frees unused space; for PostgreSQL, table_files() does it."""
    server.tool("prune", "--vacuum", "--store", server.store, "--config", str(server.config_file))


def export_all(server, status: int | None = 0):
    where = ["--store", server.store, "--config", str(server.config_file), "--subject", "main/alice"]
    return server.tool("export", "--all", *where, status=status)


def decoded(server) -> str:
    """Returns everything that can be exported, without compression."""
    return export_all(server).stdout


def is_swept(server) -> bool:
    """An export fails if a thread is deleted while it is read: then the sweep has not finished."""
    done = export_all(server, status=None)
    return done.returncode == 0 and CANARY not in done.stdout


def fill(alice, **body) -> str:
    thread = conversation(alice, [f"{CANARY} {n}" for n in range(3)], metadata={"note": CANARY}, **body)
    state = {"values": {"log": [CANARY]}, "as_node": "answer"}
    assert alice.post(f"/threads/{thread}/state", json=state).status_code == 200
    return thread


def assert_gone(server) -> None:
    assert CANARY not in decoded(server)
    server.stop()
    if is_sqlite(server.store):
        compact(server)
        assert not holds_canary(stored_bytes(server))
    else:
        assert not holds_canary(stored_bytes(server))
        assert not holds_canary(table_files(server))


def test_by_the_api(secured, store):
    server = secured(store=store, graphs={"echo": ECHO}, options=["--record"])
    with server.as_user("alice") as alice:
        kept = make_thread(alice)
        say(alice, kept, "this stays")
        thread = fill(alice)
        server.stop()
        # The text was stored; otherwise the rest would prove nothing.
        assert holds_canary(stored_bytes(server))
        if not is_sqlite(server.store):
            assert holds_canary(table_files(server))
        server.start()
    with server.as_user("alice") as alice:
        assert CANARY in decoded(server)
        assert alice.delete(f"/threads/{thread}").status_code < 300
        assert alice.get(f"/threads/{thread}").status_code == 404
        assert "this stays" in decoded(server)
    assert_gone(server)


def test_when_it_expires(secured, store):
    config = {"ttl": {"sweep_interval": 0.01}}
    server = secured(store=store, graphs={"echo": ECHO}, config=config)
    with server.as_user("alice") as alice:
        thread = fill(alice)
        ttl = {"ttl": 0.02, "strategy": "delete"}
        assert alice.patch(f"/threads/{thread}", json={"ttl": ttl}).status_code == 200
        wait_for(lambda: alice.get(f"/threads/{thread}").status_code == 404, what="the thread to expire")
    wait_for(lambda: is_swept(server), what="the sweeper")
    assert_gone(server)


def test_when_it_is_pruned(secured, store):
    """Values that only older states had are deleted with them."""
    graph = {
        "name": "echo",
        "state": {"log": {"type": "string"}},
        "nodes": {"answer": {"kind": "set", "update": {"heard": True}}},
        "edges": [["__start__", "answer"], ["answer", "__end__"]],
    }
    graph["state"]["heard"] = {"type": "boolean"}
    server = secured(store=store, graphs={"echo": graph})
    with server.as_user("alice") as alice:
        thread = make_thread(alice)
        for text in (CANARY * 10, "harmless"):
            body = {"assistant_id": "echo", "input": {"log": text}}
            assert alice.post(f"/threads/{thread}/runs/wait", json=body).status_code == 200
        answer = alice.post("/threads/prune", json={"thread_ids": [thread], "strategy": "keep_latest"})
        if answer.status_code == 404:
            pytest.skip("no route to prune")
        assert answer.status_code < 300, answer.text
        older = alice.get(f"/threads/{thread}/runs").json()[1:]
        for run in older:  # the run has its input
            assert alice.delete(f"/threads/{thread}/runs/{run['run_id']}").status_code < 300
        assert alice.get(f"/threads/{thread}/state").json()["values"]["log"] == "harmless"
    assert_gone(server)
