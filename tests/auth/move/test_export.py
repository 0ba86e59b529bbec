"""`heddle export` and `import`: from one database into another, byte for byte."""

from __future__ import annotations

import json

import pytest
from moving import ECHO, conversation, make_thread, rows, say, view
from secured import STORES

TEXTS = ["one", "two " * 200, 'üñí € 😀 \u0000 and "quotes"\n', "four"]


def export(server, *arguments: str):
    file = server.folder / f"export-{len(list(server.folder.glob('export-*')))}.jsonl"
    server.tool(
        "export", *arguments, "--store", server.store, "--config", str(server.config_file), "--output", str(file)
    )
    return file


@pytest.mark.parametrize("target", STORES)
def test_a_thread_moves_between_databases(secured, store, target):
    server = secured(store=store, graphs={"echo": ECHO})
    with server.as_user("alice") as alice:
        thread = conversation(alice, TEXTS, metadata={"topic": "ü"})
        before = view(alice, thread)
    file = export(server, thread, "--subject", "main/alice")
    assert not oct(file.stat().st_mode).endswith(("4", "6", "7"))

    other = secured(store=target, graphs={"echo": ECHO})
    where = ["--store", other.store, "--config", str(other.config_file), "--subject", "main/alice"]
    assert "1 threads" in other.tool("import", str(file), *where).stdout
    assert rows(export(other, thread, "--subject", "main/alice")) == rows(file)
    with other.as_user("alice") as alice:
        assert view(alice, thread) == before
        # The thread continues where it was.
        assert say(alice, thread, "and on")["log"][-2:] == ["and on", "heard"]
    with other.as_user("bob") as bob:
        assert bob.get(f"/threads/{thread}").status_code == 404


def test_all_data_of_a_subject(secured, store):
    server = secured(store=store, graphs={"echo": ECHO})
    with server.as_user("alice") as alice, server.as_user("bob") as bob:
        threads = [conversation(alice, ["a", "b"]), make_thread(alice)]
        assistant = alice.post("/assistants", json={"graph_id": "echo", "name": "mine"}).json()["assistant_id"]
        assert alice.put("/store/items", json={"namespace": ["a"], "key": "k", "value": {"x": 1}}).status_code < 300
        cron = alice.post(
            "/runs/crons", json={"assistant_id": assistant, "schedule": "0 0 1 1 *", "input": {"log": []}}
        )
        assert cron.status_code == 200, cron.text
        conversation(bob, ["bob's own"])
    file = export(server, "--all", "--subject", "main/alice")
    text = file.read_text()
    assert "bob's own" not in text
    tables = {json.loads(line).get("table") for line in text.splitlines()}
    assert {"assistants", "assistant_versions", "items", "crons", "checkpoints", "thread_info", "runs"} <= tables

    # Into the same database, as another user.
    where = ["--store", server.store, "--config", str(server.config_file), "--subject", "main/carol"]
    assert "2 threads" in server.tool("import", str(file), *where).stdout
    assert rows(export(server, "--all", "--subject", "main/carol")) == rows(file)
    with server.as_user("carol") as carol, server.as_user("alice") as alice:
        for thread in threads:
            mine, theirs = view(carol, thread), view(alice, thread)
            assert (mine["state"], mine["history"]) == (theirs["state"], theirs["history"])
        assert carol.get("/store/items", params={"namespace": "a", "key": "k"}).json()["value"] == {"x": 1}
        assert carol.get(f"/assistants/{assistant}").json()["name"] == "mine"

    # Everything exists already: refused, or replaced on request.
    refused = server.tool("import", str(file), *where, status=1).stderr
    assert "exists already" in refused and "line " in refused
    server.tool("import", str(file), *where, "--if-exists", "replace")
    assert rows(export(server, "--all", "--subject", "main/carol")) == rows(file)


def damaged(lines: list[str]) -> dict[str, tuple[list[str], str]]:
    """Maps a kind of damage to the lines of the file and the expected error."""
    place = {json.loads(line).get("table"): n for n, line in enumerate(lines)}
    swapped = lines.copy()
    swapped[place["chunks"]], swapped[place["runs"]] = lines[place["runs"]], lines[place["chunks"]]
    future = [lines[0].replace('"version":1', '"version":9'), *lines[1:]]

    def changed(table: str, change) -> list[str]:
        line = json.loads(lines[place[table]])
        change(line["row"])
        return [*lines[: place[table]], json.dumps(line), *lines[place[table] + 1 :]]

    return {
        "empty": ([], "the file is empty"),
        "cut": (lines[:-3], "the export is incomplete"),
        "cut within a line": ([*lines[:-3], lines[-3][:20]], f"line {len(lines) - 2}"),
        "a row less": ([*lines[: place["runs"]], *lines[place["runs"] + 1 :]], "rows are missing"),
        "a row twice": ([*lines[: place["runs"] + 1], *lines[place["runs"] :]], "rows are missing"),
        "order": (swapped, "not in order"),
        "version": (future, "line 1: an export of version 9"),
        "no JSON": ([*lines[:3], "{", *lines[4:]], "line 4"),
        "something else": (['{"a": 1}'], "line 1"),
        "nothing after the end": ([*lines, lines[1]], "unexpected line after the end"),
        "a column less": (changed("runs", lambda row: row.pop("status")), "column status of runs"),
        "a column more": (changed("runs", lambda row: row.update(more=1)), "does not match the columns"),
        "a status": (changed("runs", lambda row: row.update(status="great")), "unknown status"),
        "another value": (changed("chunks", lambda row: row.update(data={"text": "forged"})), "damaged"),
        "no thread": ([lines[0], *lines[2:]], "before the first thread"),
    }


def test_bad_files_change_nothing(secured, store):
    server = secured(store=store, graphs={"echo": ECHO})
    with server.as_user("alice") as alice:
        thread = conversation(alice, ["x" * 300, "y" * 300])
    lines = export(server, thread, "--subject", "main/alice").read_text().splitlines()
    where = ["--store", server.store, "--config", str(server.config_file), "--subject", "main/dave"]
    file = server.folder / "bad.jsonl"
    for name, (content, text) in damaged(lines).items():
        file.write_text("".join(f"{line}\n" for line in content) if name != "cut within a line" else "\n".join(content))
        said = server.tool("import", str(file), *where, status=1).stderr
        assert text in said, (name, said)
        nothing = server.tool("export", "--all", *where, status=1).stderr
        assert "subject dave of issuer main not found in the database" in nothing, name
    file.write_text("".join(f"{line}\n" for line in lines))
    server.tool("import", str(file), *where)
    assert len(rows(export(server, "--all", "--subject", "main/dave"))) > 1  # he has never signed in


def test_unknown_threads_and_owners(secured):
    server = secured(graphs={"echo": ECHO})
    where = ["--store", server.store, "--config", str(server.config_file)]
    with server.as_user("alice") as alice:
        conversation(alice, ["x"])
    assert "thread nope not found" in server.tool("export", "nope", *where, "--subject", "main/alice", status=1).stderr
    assert "--subject or --principal is required" in server.tool("export", "nope", *where, status=2).stderr
    assert "ALIAS/SUBJECT" in server.tool("export", "nope", *where, "--subject", "alice", status=2).stderr
    for command in (["export", "--all"], ["prune", "--dry-run"], ["threads"]):
        issuer = server.tool(*command, *where, "--subject", "mian/alice", status=1).stderr
        assert "no issuer with the alias mian in the configuration" in issuer
        subject = server.tool(*command, *where, "--subject", "main/alcie", status=1).stderr
        assert "subject alcie of issuer main not found in the database" in subject
    missing = server.tool("export", "nope", "--store", f"sqlite:{server.folder}/none.db", status=1).stderr
    assert "the database does not exist" in missing
    assert not (server.folder / "none.db").exists()
