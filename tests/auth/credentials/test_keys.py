"""API keys: created, listed, used and revoked with the command line while the server runs."""

from __future__ import annotations

import json
import os
import re
import stat

import pytest
from programs import wait_for
from secured import Secured

SHAPE = re.compile(r"hdk_([A-Za-z0-9]{16})_([A-Za-z0-9_-]{43})\n")


def make(server: Secured, subject: str, *options: str) -> tuple[str, str, str]:
    """Creates a key; returns the whole key, its id and its secret."""
    done = server.tool("key", "create", "--subject", subject, "--store", server.store, *options)
    found = SHAPE.fullmatch(done.stdout)
    assert found, done.stdout
    return done.stdout.strip(), found[1], found[2]


def listed(server: Secured) -> dict[str, list[str]]:
    lines = server.tool("key", "list", "--store", server.store).stdout.splitlines()
    assert lines[0].split() == ["ID", "STATE", "ADMIN", "CREATED", "EXPIRES", "SUBJECT"]
    return {line.split()[0]: line.split(None, 5)[1:] for line in lines[1:]}


def test_keys_let_in_and_out(secured, store):
    server = secured(store=store)
    key, id, _ = make(server, "nightly report")
    for headers in ({"x-api-key": key}, {"Authorization": f"Bearer {key}"}):
        with server.client(headers=headers) as http:
            made = http.post("/threads", json={})
            assert made.status_code == 200 and made.json()["metadata"]["owner"] == "nightly report"
    state, admin, _, expires, subject = listed(server)[id]
    assert (state, admin, expires, subject) == ("good", "no", "never", "nightly report")
    server.tool("key", "revoke", id, "--store", server.store)
    assert listed(server)[id][0] == "revoked"

    def is_out() -> bool:
        with server.client(headers={"x-api-key": key}) as http:
            answer = http.post("/threads/count", json={})
        assert answer.status_code in (200, 401)
        return answer.status_code == 401

    wait_for(is_out, what="the key to be out")
    # Permanent; revoking again is not an error.
    server.tool("key", "revoke", id, "--store", server.store)
    assert listed(server)[id][0] == "revoked"


def test_keys_of_one_subject_share_a_compartment(secured):
    server = secured()
    first, second, other = (make(server, subject)[0] for subject in ("bot", "bot", "other"))
    thread = server.ask("POST", "/threads", token=first, json={})["thread_id"]
    assert server.ask("GET", f"/threads/{thread}", token=second)["thread_id"] == thread
    server.ask("GET", f"/threads/{thread}", 404, token=other)
    # A token and a key with the same subject are different principals.
    server.ask("GET", f"/threads/{thread}", 404, token=server.user("bot"))


def test_operators_have_keys(secured):
    server = secured()
    plain, admin = make(server, "plain")[0], make(server, "operator", "--admin")[0]
    with server.client(plain) as http:
        assert http.get("/metrics").status_code == 403
    with server.client(admin) as http:
        assert http.get("/metrics").status_code == 200
    assert sorted(line[1] for line in listed(server).values()) == ["no", "yes"]


def test_guesses_are_refused(secured):
    server = secured()
    key, id, secret = make(server, "bot")
    guesses = [
        key[:-1] + ("A" if key[-1] != "A" else "E"), f"hdk_{id}_{'A' * 43}", f"hdk_{'0' * 16}_{secret}", f"hdk_{id}_", key + "A",
        key.replace("hdk_", "hdk-"), f"hdk_{id[:-1]}%_{secret}",
    ]  # fmt: skip
    for guess in guesses:
        server.ask("POST", "/threads/count", 401, token=guess, json={})
    server.ask("POST", "/threads/count", token=key, json={})


def test_secrets_are_not_stored(secured):
    server = secured()
    key, id, secret = make(server, "bot")
    server.ask("POST", "/threads", token=key, json={})
    database = server.database()
    assert id.encode() in database and secret.encode() not in database
    server.stop()
    assert secret not in server.tool("key", "list", "--store", server.store).stdout


def test_the_store_is_that_of_the_configuration(idle):
    server = idle()
    config = json.loads(server.config_file.read_text()) | {"store": f"sqlite:{server.folder}/configured.db"}
    server.config_file.write_text(json.dumps(config))
    where = ("--config", str(server.config_file))
    key = server.tool("key", "create", "--subject", "bot", *where).stdout.strip()
    assert (server.folder / "configured.db").exists()
    # The whole key is accepted in place of its id.
    server.tool("key", "revoke", key, *where)
    assert "revoked" in server.tool("key", "list", *where).stdout


def test_keys_end_by_themselves(secured):
    server = secured()
    _, id, _ = make(server, "bot", "--expires", "30")
    expires = listed(server)[id][3]
    assert re.fullmatch(r"\d{4}-\d\d-\d\d", expires)


def test_keys_may_be_off(secured):
    server = secured(auth={"api_keys": False})
    server.ask("POST", "/threads/count", 401, token=make(server, "bot")[0], json={})


@pytest.mark.parametrize(
    "arguments",
    [
        ["create"], ["create", "--subject", ""], ["create", "--subject", "a\nb"], ["create", "--subject", "a" * 256],
        ["create", "--subject", "a", "--expires", "soon"], ["create", "--subject", "a", "--expires", "0"],
        ["create", "--subject", "a", "extra"], ["revoke"], ["list", "extra"], ["principal"], ["destroy"], [],
        ["create", "--subject"], ["create", "--nope"],
    ],
)  # fmt: skip
def test_mistakes_have_a_sentence(idle, arguments):
    done = idle().tool("key", *arguments, status=2)
    assert done.stderr.startswith("heddle key: ") and not done.stdout


def test_missing_keys_and_databases_are_reported(secured):
    server = secured()
    assert "key nothere not found" in server.tool("key", "revoke", "nothere", "--store", server.store, status=1).stderr
    assert "the database does not exist" in server.tool("key", "list", "--store", "sqlite:nowhere.db", status=1).stderr


def test_a_key_of_principals(idle):
    server = idle()
    server.tool("key", "principal", "new.key")
    file = server.folder / "new.key"
    assert stat.S_IMODE(os.stat(file).st_mode) == 0o600
    text = file.read_text()
    assert re.fullmatch(r"[A-Za-z0-9_-]{43}\n", text)
    assert "exists" in server.tool("key", "principal", "new.key", status=1).stderr.lower()
    assert file.read_text() == text
    server.tool("key", "principal", "other.key")
    assert (server.folder / "other.key").read_text() != text
