"""Several people in a room: whose words agents were given, and as whom their runs act."""

from __future__ import annotations

import pytest
from plain import human, until
from sharing import GRAPHS, crowd


@pytest.fixture
def world(secured, store):
    """Alice's room with the agent Echo, and with an editor and a viewer."""
    server = secured(store=store, graphs=GRAPHS)
    with crowd(server, "alice", "edit", "vera") as people:
        thread = people["alice"].thread()
        people["alice"].share(thread, "editor", subject="edit")
        people["alice"].share(thread, "viewer", subject="vera")
        path = f"/threads/{thread}"
        people["alice"].ask("PUT", f"{path}/room", json={"agents": [{"assistant_id": "echo", "name": "Echo"}]})
        yield people, path


def messages(person, path):
    return person.ask("GET", f"{path}/room/messages")


def senders(entries):
    return [entry["sender"]["id"] for entry in entries if entry["sender"]["type"] == "person"]


def plain(person, path, text, identity=None):
    body = {"assistant_id": "echo", "input": human(text, identity)}
    person.ask("POST", f"{path}/runs/wait", json=body)


def post(person, path, text, **more):
    result = person.ask("POST", f"{path}/room/messages", 201, json={"content": text, **more})
    for run in result["runs"]:
        person.ask("GET", f"{path}/runs/{run['run_id']}/join")
    return result


def test_plain_turns_show_the_person_who_made_the_run(world):
    people, path = world
    plain(people["alice"], path, "one", "m1")
    plain(people["edit"], path, "two", "m2")
    assert senders(messages(people["vera"], path)) == ["alice", "edit"]
    assert senders(people["vera"].ask("GET", f"{path}/timeline")) == ["alice", "edit"]


def test_a_plain_run_changes_no_message_of_another_person(world):
    people, path = world
    plain(people["alice"], path, "one", "m1")
    plain(people["edit"], path, "never said by alice", "m1")
    first, _, other, _ = messages(people["vera"], path)
    assert (first["id"], first["content"], first["version"]) == ("m1", "one", 1)
    assert (other["content"], other["sender"]["id"]) == ("never said by alice", "edit") and other["id"] != "m1"


def test_what_an_agent_was_given_is_of_those_who_said_it(world):
    people, path = world
    post(people["alice"], path, "a note")
    post(people["edit"], path, "what was noted?", mentions=["Echo"])
    for shown in (
        people["vera"].ask("GET", f"{path}/timeline"),
        people["vera"].ask("GET", f"{path}/messages", params={"assistant_id": "echo"})["messages"],
    ):
        assert senders(shown) == ["alice", "edit"]


def test_a_chain_acts_as_the_first_asker(world):
    people, path = world
    body = {"graph_id": "echo", "name": "Second"}
    second = people["alice"].ask("POST", "/assistants", json=body)["assistant_id"]
    agents = [{"assistant_id": "echo", "name": "Echo"}, {"assistant_id": second}]
    people["alice"].ask("PUT", f"{path}/room", json={"agents": agents, "agents_ask": {"depth": 1}})
    post(people["edit"], path, "greet @Second", mentions=["Echo"])
    found = until(lambda: len(all := messages(people["edit"], path)) == 3 and all)
    assert found[2]["sender"]["id"] == second and found[2]["reply_to"] == found[1]["id"]
    for message in found[1:]:
        run = people["edit"].ask("GET", f"{path}/runs/{message['run_id']}")
        assert run["kwargs"]["config"]["configurable"]["langgraph_auth_user_id"] == "edit"
