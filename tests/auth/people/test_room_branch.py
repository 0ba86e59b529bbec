"""A participant continues a room alone, or copies it: what the new thread has of the others."""

from __future__ import annotations

import pytest
from programs import wait_for
from sharing import GRAPHS, crowd


@pytest.fixture
def world(secured, store):
    """Alice's room with her agent, an editor and a viewer; sam is a stranger."""
    server = secured(store=store, graphs=GRAPHS)
    with crowd(server, "alice", "edit", "vera", "sam") as people:
        thread = people["alice"].thread()
        for name, role in (("edit", "editor"), ("vera", "viewer")):
            people["alice"].share(thread, role, subject=name)
        yield people, f"/threads/{thread}"


def assistant(person, name):
    return person.ask("POST", "/assistants", json={"graph_id": "echo", "name": name})["assistant_id"]


def post(person, path, text):
    return person.ask("POST", f"{path}/room/messages", 201, json={"content": text})


def ended(person, path, result):
    for run in result["runs"]:
        wait_for(lambda run=run: person.ask("GET", f"{path}/runs/{run['run_id']}")["status"] == "success")


def branch(person, path, message, status=201):
    return person.ask("POST", f"{path}/room/branch", status, json={"message_id": message})


def test_a_viewer_continues_alone(world):
    people, path = world
    message = post(people["edit"], path, "hello")["message"]["id"]
    branch(people["sam"], path, message, 404)
    made = f"/threads/{branch(people['vera'], path, message)['thread_id']}"
    assert people["vera"].ask("GET", made)["metadata"]["owner"] == "vera"
    for name in "alice", "edit":
        people[name].ask("GET", made, 404)
    [copied] = people["vera"].ask("GET", f"{made}/room/messages")
    assert copied["sender"] == {"type": "person", "id": "edit", "name": "edit"}
    post(people["vera"], made, "and now I")
    assert len(people["alice"].ask("GET", f"{path}/room/messages")) == 1


def test_agents_of_others_stay_behind(world):
    people, path = world
    clerk = assistant(people["alice"], "Clerk")
    result = post(people["alice"], path, "@Clerk, hello")
    ended(people["alice"], path, result)
    for made in (
        branch(people["vera"], path, result["message"]["id"]),
        people["vera"].ask("POST", f"{path}/copy"),
    ):
        room = f"/threads/{made['thread_id']}"
        assert people["vera"].ask("GET", f"{room}/room")["agents"] == []
        assert post(people["vera"], room, "@Clerk, do you hear me?")["runs"] == []
    made = people["alice"].ask("POST", f"{path}/copy")
    agents = people["alice"].ask("GET", f"/threads/{made['thread_id']}/room")["agents"]
    assert [agent["assistant_id"] for agent in agents] == [clerk]


def test_older_versions_and_inboxes_stay_behind(world):
    people, path = world
    message = post(people["alice"], path, "@vera, my secret")["message"]["id"]
    people["alice"].ask("PATCH", f"{path}/room/messages/{message}", json={"content": "@vera, hello"})
    for made in (branch(people["vera"], path, message), people["vera"].ask("POST", f"{path}/copy")):
        copied = people["vera"].ask("GET", f"/threads/{made['thread_id']}/room/messages/{message}")
        assert copied["content"] == "@vera, hello"
        assert "secret" not in str(copied)
    found = people["vera"].ask("GET", "/mentions")
    assert {each["thread_id"] for each in found} == {path.rsplit("/", 1)[1]}
    people["alice"].ask("DELETE", path, 204)
    assert people["vera"].ask("GET", "/mentions") == []
