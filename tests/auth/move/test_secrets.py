"""`heddle doctor`: errors in a setup, and secrets in a database."""

from __future__ import annotations

import os

from moving import ECHO, conversation, make_thread, say
from sql import columns, insert, is_sqlite
from tokens import Issuer

KEY = "sk-proj-4Tf9aB27Qx81LmZp0Wv3"
# The column of each table that gets the text: the last one that is neither a number nor a hash.
PLANTED = {
    "threads": "thread_id", "checkpoints": "metadata", "writes": "value", "chunks": "data", "assistants": "body",
    "assistant_versions": "body", "thread_info": "body", "runs": "body", "event_pages": "data", "items": "value",
    "crons": "body", "exchanges": "data", "principals": "body", "participants": "body", "invitations": "body",
    "api_keys": "body", "outbox": "body",
}  # fmt: skip


def length(data: bytes) -> bytes:
    assert len(data) < 128
    return bytes([len(data)]) + data


def stored(table: str, text: str) -> bytes | str:
    """Encodes the text as the column stores it, without compression."""
    data = text.encode()
    if table == "writes":
        return b"\x01" + data
    if table in ("chunks", "outbox"):
        return b"\x00" + data
    if table == "event_pages":
        return b"\x00" + bytes([1, 1, 0]) + length(b"values") + length(data)
    if table == "exchanges":
        return b"\x00" + b"\x01" + length(b"") * 7 + length(data) + bytes([0, 1, 0])
    return text


def plant(url: str, table: str, secret: str) -> None:
    target = PLANTED[table]
    text = secret if table == "threads" else '{"configurable": {"note": "%s"}}' % secret
    row = {}
    for number, (name, kind) in enumerate(columns(url, table)):
        if name == target:
            row[name] = stored(table, text)
        elif "int" in kind:
            row[name] = number
        elif name in ("checkpoint", "hash") and kind in ("blob", "bytea"):
            # The body of a checkpoint without values: format, v, JSON, no entries.
            row[name] = b"\x00\x01\x04" + length(b"{}") + b"\x00" if name == "checkpoint" else b"\x00" * 16
        else:
            row[name] = f"planted-{table}"
        if not is_sqlite(url) and kind == "bytea" and isinstance(row[name], str):
            row[name] = row[name].encode()
    insert(url, table, row)


def test_every_table(secured, store):
    server = secured(store=store, graphs={"echo": ECHO})
    with server.as_user("alice") as alice:
        conversation(alice, ["What is a token, and is my password safe?", "a text about Bearer authentication " * 20])
    clean = server.tool("doctor", "--secrets", server.store)
    assert clean.stdout.splitlines()[-1].endswith(" 0 findings"), clean.stdout
    server.stop()
    for table in PLANTED:
        plant(server.store, table, KEY)
    found = server.tool("doctor", "--secrets", server.store, status=1)
    assert KEY not in found.stdout + found.stderr and KEY[5:] not in found.stdout + found.stderr
    lines = found.stdout.splitlines()
    for table in PLANTED:
        assert [line for line in lines if line.startswith(f"{table} ") and "a key" in line], f"{table}: {found.stdout}"
    assert lines[-1].endswith(f" {len(PLANTED)} findings"), found.stdout
    for table in PLANTED:
        assert f"{table} " in lines[-2], "it says what was scanned"


def test_principals_are_not_secrets(secured, store):
    """Principals are hashes, and some begin like keys: this user's is sk-HcmIZbNfwGeli3rC3LQ."""
    subject = "user296134"
    server = secured(store=store, graphs={"echo": ECHO})
    with server.as_user("alice") as alice, server.as_user(subject) as user:
        shared = make_thread(alice)
        body = {"issuer": "main", "subject": subject, "role": "editor"}
        made = alice.post(f"/threads/{shared}/participants", json=body).json()
        assert made["participant_id"] == "sk-HcmIZbNfwGeli3rC3LQ"
        for thread in (shared, make_thread(user)):  # as a participant, and as the owner
            say(user, thread, "hello")
    found = server.tool("doctor", "--secrets", server.store)
    assert found.stdout.splitlines()[-1].endswith(" 0 findings"), found.stdout


def test_a_sound_set_up(secured):
    server = secured(graphs={"echo": ECHO})
    file = server.folder / "key"
    file.write_text("00" * 32 + "\n")
    file.chmod(0o600)
    text = server.config_file.read_text().replace('"env": "TEST_PRINCIPAL_KEY"', f'"file": "{file}"')
    server.config_file.write_text(text)
    where = ["--config", str(server.config_file), "--store", server.store]
    fine = server.tool("doctor", *where).stdout
    for line in (
        "configuration",
        "authentication",
        "key file",
        "network",
        "disk",
        "database",
        "schema",
        "values",
        "rows",
    ):
        assert f"ok    {line} " in fine, fine
    assert fine.splitlines()[-1].startswith("ok")

    file.chmod(0o644)
    assert "FAIL  key file" in server.tool("doctor", *where, status=1).stdout
    file.unlink()
    missing = server.tool("doctor", *where, status=1).stdout
    assert "FAIL  key file" in missing and "FAIL  authentication" in missing


def test_failing_checks(secured, tmp_path):
    server = secured(graphs={"echo": ECHO})
    open_host = server.tool("doctor", "--host", "0.0.0.0", "--store", server.store, status=1).stdout
    assert "FAIL" in open_host and "0.0.0.0" in open_host
    assert "FAIL  configuration" in server.tool("doctor", "--port", "x", status=1).stdout
    fresh = server.tool("doctor", "--store", f"sqlite:{tmp_path}/none.db").stdout
    assert "does not exist yet" in fresh and not os.listdir(tmp_path)
    (tmp_path / "other.db").write_bytes(b"no database at all " * 100)
    assert "FAIL  database" in server.tool("doctor", "--store", f"sqlite:{tmp_path}/other.db", status=1).stdout
    gone = server.tool("doctor", "--secrets", f"sqlite:{tmp_path}/gone.db", status=1).stderr
    assert "the database does not exist" in gone
    password = "postgresql://heddle:hunter2-and-more@127.0.0.1:1/none?timeout=1"
    said = server.tool("doctor", "--store", password, status=1)
    assert "hunter2" not in said.stdout + said.stderr


def test_secrets_of_other_shapes(secured):
    server = secured(graphs={"echo": ECHO})
    token = Issuer("main").token("alice")
    server.stop()
    for number, secret in enumerate(
        (token, f"Bearer {token}", "postgresql://u:hunter2@db/x", "hdk_0123456789abcdef0123")
    ):
        row = {"principal": "p", "namespace": "n", "key": f"k{number}", "created_at": 1, "updated_at": 1,
               "value": '{"a": "%s"}' % secret}  # fmt: skip
        insert(server.store, "items", row)
    row |= {"key": "named", "value": '{"db_password": "short", "api_key": "heddle:secret:a.b", "max_tokens": "5"}'}
    insert(server.store, "items", row)
    found = server.tool("doctor", "--secrets", server.store, status=1).stdout
    assert found.splitlines()[-1].endswith(" 5 findings"), found
    assert "value.db_password: by name, *** (5 bytes)" in found
    assert "short" not in found and "hunter2" not in found and token[10:40] not in found
