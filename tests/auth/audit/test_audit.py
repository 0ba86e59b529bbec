"""The audit log: principal, action, object and decision of each request, and no content."""

from __future__ import annotations

import json
import signal

import pytest
from programs import wait_for
from secured import Secured
from server import GRAPHS
from sharing import Person


@pytest.fixture
def audited(secured):
    return secured(graphs={"echo": GRAPHS / "echo.json"}, config={"audit": {"file": "audit.log"}})


def entries(server, name: str = "audit.log") -> list[dict]:
    """Returns the entries of complete lines; the last line may be incomplete."""
    path = server.folder / name
    text = path.read_text() if path.exists() else ""
    return [json.loads(line) for line in text[: text.rfind("\n") + 1].splitlines()]


def found(server, **wanted) -> list[dict]:
    return [each for each in entries(server) if all(each.get(name) == value for name, value in wanted.items())]


def noted(server, **wanted) -> dict:
    """Waits for the entry: a response may arrive before its line."""
    wait_for(lambda: found(server, **wanted), what=f"an entry with {wanted}")
    return found(server, **wanted)[-1]


def test_entries_name_actor_and_action(audited):
    with audited.as_user("alice") as alice, audited.as_user("mallory") as mallory:
        thread = alice.post("/threads", json={}).json()["thread_id"]
        said = {"assistant_id": "echo", "input": {"messages": [{"role": "user", "content": "the canary sings"}]}}
        assert alice.post(f"/threads/{thread}/runs/wait", json=said).status_code == 200
        assert mallory.get(f"/threads/{thread}").status_code == 404
        assert alice.get("/ok").status_code == 200
    assert audited.client("not a token").get(f"/threads/{thread}").status_code == 401
    run = noted(audited, action="POST /threads/{thread_id}/runs/wait")
    assert (run["subject"], run["issuer"], run["status"], run["decision"]) == ("alice", "main", 200, "allow")
    assert run["object"] == {"thread_id": thread}
    assert len(run["principal"]) == 22 and run["request_id"] and run["peer"] == "127.0.0.1"
    stranger = noted(audited, subject="mallory")
    assert (stranger["status"], stranger["decision"]) == (404, "deny")
    assert stranger["principal"] != run["principal"]
    nobody = noted(audited, status=401)
    assert nobody["decision"] == "deny" and "subject" not in nobody
    assert not found(audited, action="GET /ok")
    text = (audited.folder / "audit.log").read_text()
    assert "canary" not in text and "Bearer" not in text and "eyJ" not in text


def test_participants_and_operators(audited):
    with audited.as_user("alice") as alice:
        thread = alice.post("/threads", json={}).json()["thread_id"]
        owner = noted(audited, action="POST /threads")["principal"]
        Person(audited, audited.user("alice")).share(thread, "viewer", subject="vera")
    with audited.as_user("vera") as vera:
        assert vera.get(f"/threads/{thread}").status_code == 200
    seen = noted(audited, subject="vera")
    assert (seen["owner"], seen["role"], seen["decision"]) == (owner, "viewer", "allow")
    with audited.as_admin() as root:
        answer = root.get(f"/threads/{thread}", headers={"Heddle-Act-For": "main/alice"})
        assert answer.status_code == 200, answer.text
    acted = noted(audited, subject="root")
    assert acted["act_for"] == owner and acted["principal"] != owner


def test_keys_are_named_not_shown(audited):
    made = audited.tool(
        "key", "create", "--subject", "robot", "--config", str(audited.config_file), "--store", audited.store
    )
    key = next(word for word in made.stdout.split() if word.startswith("hdk_"))
    assert audited.client(headers={"x-api-key": key}).post("/threads", json={}).status_code == 200
    entry = noted(audited, subject="robot")
    assert entry["key_id"] and entry["key_id"] in key
    assert key not in (audited.folder / "audit.log").read_text()


def test_the_file_may_be_moved(audited):
    with audited.as_user("alice") as alice:
        alice.post("/threads/count", json={})
        noted(audited, action="POST /threads/count")
        (audited.folder / "audit.log").rename(audited.folder / "audit.old")
        audited.process.send_signal(signal.SIGHUP)
        wait_for(lambda: (audited.folder / "audit.log").exists(), what="the file to be made again")
        alice.post("/threads/search", json={})
        noted(audited, action="POST /threads/search")
    assert not [each for each in entries(audited, "audit.old") if each["action"] == "POST /threads/search"]


def test_a_file_that_cannot_be_written_keeps_the_server_from_starting():
    server = Secured(config={"audit": {"file": "/no/such/folder/audit.log"}})
    with pytest.raises(RuntimeError, match="audit.file"):
        server.start()
    server.remove()
