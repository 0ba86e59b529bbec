"""Owner, editor, viewer, member of an organisation and stranger on the routes that matter."""

from __future__ import annotations

import uuid

import pytest
from plain import human
from programs import Heddle, collect
from sharing import GRAPHS, crowd, machine

AUTH_OFF = "auth is off"


@pytest.fixture(scope="module")
def server(secured_module):
    return secured_module(graphs=GRAPHS)


@pytest.fixture
def world(server):
    """A thread of alice's with a run; edit is its editor, vera a viewer, oscar by his organisation."""
    with crowd(server, "alice", "edit", "vera", "oscar@weavers", "sam") as people:
        alice = people["alice"]
        thread = alice.thread(metadata={"topic": "looms"})
        alice.ask("POST", f"/threads/{thread}/runs/wait", json={"assistant_id": "echo", "input": human("hello")})
        alice.share(thread, "editor", subject="edit")
        alice.share(thread, "viewer", subject="vera")
        alice.share(thread, "viewer", organisation="weavers")
        yield people, thread


READS = ["", "/state", "/history", "/branches", "/timeline", "/agents", "/messages", "/runs", "/participants"]


@pytest.mark.parametrize("who", ["alice", "edit", "vera", "oscar"])
def test_participants_may_read(world, who):
    people, thread = world
    for part in READS:
        assert people[who].ask("GET", f"/threads/{thread}{part}") == people["alice"].ask(
            "GET", f"/threads/{thread}{part}"
        ) or part in ("", "/participants")


def test_the_response_has_the_role(world):
    people, thread = world
    roles = {who: people[who].ask("GET", f"/threads/{thread}")["role"] for who in ("alice", "edit", "vera", "oscar")}
    assert roles == {"alice": "owner", "edit": "editor", "vera": "viewer", "oscar": "viewer"}
    assert people["vera"].ask("GET", f"/threads/{thread}")["metadata"]["owner"] == "alice"


def test_other_users_find_nothing(world):
    people, thread = world
    never = str(uuid.uuid4())
    for part in READS:
        seen = people["sam"].http.get(f"/threads/{thread}{part}")
        missing = people["sam"].http.get(f"/threads/{never}{part}")
        assert seen.status_code == missing.status_code == 404
        assert seen.text == missing.text.replace(never, thread)


def test_changing_takes_an_editor(world):
    people, thread = world
    say = {"assistant_id": "echo", "input": human("more")}
    for who, status in {"alice": 200, "edit": 200, "vera": 403, "oscar": 403, "sam": 404}.items():
        ask = people[who].ask
        ask("POST", f"/threads/{thread}/runs/wait", status, json=say)
        ask("PATCH", f"/threads/{thread}", status, json={"metadata": {"by": who}})
        ask("POST", f"/threads/{thread}/state", status, json={"values": human("changed"), "as_node": "reply"})
    runs = {"assistant_id": "nap", "input": {"ms": 0}, "after_seconds": 3600}
    for who, status in {"vera": 403, "oscar": 403, "sam": 404, "edit": 200}.items():
        run = people[who].ask("POST", f"/threads/{thread}/runs", status, json=runs).get("run_id")
    for who, status in {"vera": 403, "oscar": 403, "sam": 404, "edit": 200}.items():
        people[who].ask("POST", f"/threads/{thread}/runs/{run}/cancel", status, params={"wait": "true"})


def test_branches_are_the_editors(world):
    people, thread = world
    first = people["vera"].ask("GET", f"/threads/{thread}/messages")["messages"][0]
    say = {"assistant_id": "echo", "input": human("again"), "checkpoint_id": first["fork_checkpoint_id"]}
    people["edit"].ask("POST", f"/threads/{thread}/runs/wait", json=say)
    size = people["vera"].ask("GET", f"/threads/{thread}?include=usage")["usage"]["bytes"]
    own = people["vera"].ask("GET", f"/threads/{thread}/messages")["messages"][0]["checkpoint_id"]
    leaves = [each for each in people["vera"].ask("GET", f"/threads/{thread}/branches")["branches"] if each["leaf"]]
    [branch] = [each["branch_id"] for each in leaves if each["branch_id"] <= own <= each["head_checkpoint_id"]]
    path = f"/threads/{thread}/branches/{branch}"
    for who, status in {"vera": 403, "oscar": 403, "sam": 404, "edit": 200}.items():
        people[who].ask("PATCH", path, status, json={"name": who})
    named = people["alice"].ask("GET", f"/threads/{thread}/branches")["branches"]
    assert [each["name"] for each in named if each["name"]] == ["edit"]
    for who, status in {"vera": 403, "oscar": 403, "sam": 404, "edit": 204}.items():
        people[who].ask("DELETE", path, status)
    assert people["alice"].ask("GET", f"/threads/{thread}/messages")["messages"][0]["id"] == first["id"]
    assert people["vera"].ask("GET", f"/threads/{thread}?include=usage")["usage"]["bytes"] < size


def test_some_things_are_the_owners(world):
    people, thread = world
    vera = people["alice"].participants(thread)[0]["participant_id"]
    for who, status in {"edit": 403, "vera": 403, "oscar": 403, "sam": 404}.items():
        ask = people[who].ask
        ask(
            "POST", f"/threads/{thread}/participants", status, json={"issuer": "main", "subject": "x", "role": "viewer"}
        )
        ask("PATCH", f"/threads/{thread}/participants/{vera}", status, json={"role": "editor"})
        ask("POST", f"/threads/{thread}/invitations", status, json={})
        ask("GET", f"/threads/{thread}/invitations", status)
        ask("DELETE", f"/threads/{thread}/invitations/{'0' * 64}", status)
        ask("DELETE", f"/threads/{thread}", status)
    people["alice"].ask("DELETE", f"/threads/{thread}", 204)
    for who in people:
        people[who].ask("GET", f"/threads/{thread}", 404)


def test_participants_are_listed(world):
    people, thread = world
    shown = people["vera"].participants(thread)
    by_name = {each.get("subject") or f"the {each['organisation']}": each for each in shown}
    assert {name: each["role"] for name, each in by_name.items()} == {
        "edit": "editor", "vera": "viewer", "the weavers": "viewer",
    }  # fmt: skip
    assert all(each["issuer"] == "main" and each["since"] for each in shown)
    assert "organisation" not in by_name["vera"] and "subject" not in by_name["the weavers"]


def test_roles_change_and_end(world):
    people, thread = world
    alice, vera = people["alice"], people["vera"]
    ids = {each.get("subject", "weavers"): each["participant_id"] for each in alice.participants(thread)}
    path = f"/threads/{thread}/participants"
    assert alice.ask("PATCH", f"{path}/{ids['vera']}", json={"role": "editor"})["role"] == "editor"
    vera.ask("PATCH", f"/threads/{thread}", json={"metadata": {"by": "vera"}})
    alice.ask("PATCH", f"{path}/{ids['vera']}", json={"role": "viewer"})
    vera.ask("PATCH", f"/threads/{thread}", 403, json={"metadata": {"by": "vera"}})
    vera.ask("DELETE", f"{path}/{ids['edit']}", 403)
    vera.ask("DELETE", f"{path}/{'x' * 22}", 403)
    vera.ask("DELETE", f"{path}/{ids['vera']}", 204)
    vera.ask("GET", f"/threads/{thread}", 404)
    vera.ask("DELETE", f"{path}/{ids['vera']}", 404)
    people["oscar"].ask("DELETE", f"{path}/{ids['weavers']}", 403)
    alice.ask("DELETE", f"{path}/{ids['weavers']}", 204)
    people["oscar"].ask("GET", f"/threads/{thread}", 404)
    alice.ask("DELETE", f"{path}/{ids['weavers']}", 404)
    alice.ask("PATCH", f"{path}/{ids['weavers']}", 404, json={"role": "viewer"})
    assert [each["subject"] for each in alice.participants(thread)] == ["edit"]


def test_the_existence_of_a_user_is_not_revealed(world):
    people, thread = world
    known = people["alice"].share(thread, "viewer", subject="sam")
    unknown = people["alice"].share(thread, "viewer", subject=f"never seen {uuid.uuid4()}")
    assert known.keys() == unknown.keys()
    assert len(known["participant_id"]) == len(unknown["participant_id"]) == 22
    people["sam"].ask("GET", f"/threads/{thread}")


def test_invalid_requests_are_refused(world):
    people, thread = world
    alice, path = people["alice"], f"/threads/{thread}/participants"
    good = {"issuer": "main", "subject": "new", "role": "viewer"}
    for bad in (
        {"role": "owner"}, {"role": None}, {"role": 1}, {"issuer": None}, {"issuer": ""}, {"issuer": 5}, {"subject": None},
        {"subject": ""}, {"subject": 5}, {"subject": []}, {"subject": ["a"] * 9}, {"organisation": "both"},
        {"subject": "x" * 300}, {"issuer": "x" * 100}, {"issuer": "unknown"},
    ):  # fmt: skip
        alice.ask("POST", path, 422, json={**good, **bad})
    alice.share(thread, "viewer", 409, subject="alice")
    alice.share(thread, "editor", 409, subject="vera")
    alice.ask("POST", f"/threads/{uuid.uuid4()}/participants", 404, json=good)
    assert len(alice.participants(thread)) == 3
    assert people["vera"].ask("GET", f"/threads/{thread}")["role"] == "viewer"


def test_a_thread_of_ones_own_hides_a_shared_one(world):
    people, thread = world
    people["edit"].ask("POST", "/threads", json={"thread_id": thread, "metadata": {"mine": True}})
    own = people["edit"].ask("GET", f"/threads/{thread}")
    assert own["role"] == "owner" and own["metadata"]["mine"]
    assert [each["role"] for each in people["edit"].found(ids=[thread])] == ["owner"]
    people["edit"].ask("DELETE", f"/threads/{thread}", 204)
    assert people["edit"].ask("GET", f"/threads/{thread}")["role"] == "editor"


def test_machines_take_part_by_their_keys(server):
    _, robot = machine(server, "robot")
    with crowd(server, "alice") as people:
        thread = people["alice"].thread()
        robot.ask("GET", f"/threads/{thread}", 404)
        people["alice"].share(thread, "viewer", issuer="key", subject="robot")
        assert robot.ask("GET", f"/threads/{thread}")["role"] == "viewer"
    robot.http.close()


@pytest.fixture
def plain():
    """A server without authentication."""
    yield from collect(Heddle)


def test_without_authentication_there_are_no_participants(plain):
    server = plain(graphs=GRAPHS)
    thread = server.thread()
    assert "role" not in server.ask("GET", f"/threads/{thread}")
    assert "role" not in server.ask("POST", "/threads/search", json={})[0]
    path = f"/threads/{thread}"
    for method, rest, body in (
        ("GET", f"{path}/participants", None),
        ("POST", f"{path}/participants", {"issuer": "main", "subject": "x", "role": "viewer"}),
        ("PATCH", f"{path}/participants/x", {"role": "viewer"}),
        ("DELETE", f"{path}/participants/x", None),
        ("GET", f"{path}/invitations", None),
        ("POST", f"{path}/invitations", {}),
        ("DELETE", f"{path}/invitations/x", None),
        ("POST", "/invitations/accept", {"token": "x"}),
    ):
        assert AUTH_OFF in server.ask(method, rest, 409, json=body)["detail"]


def test_every_message_shows_the_person_who_sent_it(world):
    people, thread = world
    said = {"assistant_id": "echo", "input": human("me too")}
    people["edit"].ask("POST", f"/threads/{thread}/runs/wait", json=said)
    entries = people["vera"].ask("GET", f"/threads/{thread}/timeline")
    senders = [(entry["sender"]["type"], entry["sender"]["id"]) for entry in entries]
    assert [sender for sender in senders if sender[0] == "person"] == [("person", "alice"), ("person", "edit")]
    for entry in entries[1::2]:
        assert entry["sender"]["type"] == "agent" and entry["sender"]["id"] == entry["assistant_id"]
