"""The life of an invitation."""

from __future__ import annotations

import concurrent.futures
import hashlib
import sqlite3
import uuid

import pytest
from programs import wait_for
from sharing import GRAPHS, Person, crowd

NOT_FOUND = {"detail": "Invitation not found"}


@pytest.fixture(scope="module")
def server(secured_module):
    return secured_module(graphs=GRAPHS, config={"ttl": {"sweep_interval": 0.001}})


@pytest.fixture
def people(server):
    with crowd(server, "alice", "bob", "carol", "dan") as people:
        yield people


def test_an_invitation_is_accepted_once(people):
    alice, bob, carol = people["alice"], people["bob"], people["carol"]
    thread = alice.thread()
    made = alice.invite(thread, role="editor")
    assert made["role"] == "editor" and made["uses"] == made["uses_left"] == 1
    assert made["link"].endswith(made["token"]) and made["created_at"] < made["expires_at"]
    bob.ask("GET", f"/threads/{thread}", 404)
    assert bob.accept(made["token"]) == {"thread_id": thread, "role": "editor"}
    assert bob.ask("GET", f"/threads/{thread}")["role"] == "editor"
    assert carol.accept(made["token"], 404) == NOT_FOUND
    assert bob.accept(made["token"], 404) == NOT_FOUND
    assert alice.ask("GET", f"/threads/{thread}/invitations") == []
    assert [(each["subject"], each["issuer"], each["role"]) for each in alice.participants(thread)] == [
        ("bob", "main", "editor")
    ]


def test_tokens_are_shown_once(people, server):
    alice = people["alice"]
    thread = alice.thread()
    made = alice.invite(thread, uses=3)
    listed = alice.ask("GET", f"/threads/{thread}/invitations")
    assert listed == [{key: value for key, value in made.items() if key not in ("token", "link")}]
    assert made["invitation_id"] == hashlib.sha256(made["token"].encode()).hexdigest()
    assert made["token"].encode() not in server.database()


def test_several_uses_and_existing_participants(people):
    alice, bob, carol, dan = (people[name] for name in ("alice", "bob", "carol", "dan"))
    thread = alice.thread()
    alice.share(thread, "viewer", subject="dan")
    viewer, editor = alice.invite(thread, uses=2), alice.invite(thread, role="editor")
    assert alice.accept(viewer["token"]) == {"thread_id": thread, "role": "owner"}
    assert dan.accept(viewer["token"])["role"] == "viewer"
    assert bob.accept(viewer["token"])["role"] == "viewer"
    assert bob.accept(viewer["token"])["role"] == "viewer"
    left = {each["invitation_id"]: each["uses_left"] for each in alice.ask("GET", f"/threads/{thread}/invitations")}
    assert left == {viewer["invitation_id"]: 1, editor["invitation_id"]: 1}
    assert bob.accept(editor["token"])["role"] == "editor"
    assert bob.accept(viewer["token"])["role"] == "editor"
    assert carol.accept(viewer["token"])["role"] == "viewer"
    assert alice.ask("GET", f"/threads/{thread}/invitations") == []
    assert {each["subject"]: each["role"] for each in alice.participants(thread)} == {
        "bob": "editor", "carol": "viewer", "dan": "viewer",
    }  # fmt: skip


def test_one_of_two_concurrent_acceptances_wins(secured, store):
    server = secured(store=store, graphs=GRAPHS)
    names = [f"racer{n}" for n in range(4)]
    with crowd(server, "alice", *names) as people, concurrent.futures.ThreadPoolExecutor(len(names)) as pool:
        alice = people["alice"]
        for person in people.values():
            person.found()  # all users are known and connected
        for _ in range(5):
            thread = alice.thread()
            token = alice.invite(thread)["token"]

            def accept(name: str, token=token) -> int:
                return people[name].http.post("/invitations/accept", json={"token": token}).status_code

            assert sorted(pool.map(accept, names)) == [200, 404, 404, 404]
            assert len(alice.participants(thread)) == 1


def test_wrong_used_up_taken_back_and_expired_are_the_same(people, server):
    alice, bob = people["alice"], people["bob"]
    thread, gone = alice.thread(), alice.thread()
    back, expired, deleted = alice.invite(thread), alice.invite(thread, expires_in=1), alice.invite(gone)
    alice.ask("DELETE", f"/threads/{thread}/invitations/{back['invitation_id']}", 204)
    alice.ask("DELETE", f"/threads/{gone}", 204)
    # The last one expires, and the sweeper removes it.
    wait_for(lambda: not kept(server, expired["invitation_id"]), what="the sweeper")
    for token in (back["token"], expired["token"], deleted["token"], "x", uuid.uuid4().hex, "ü" * 20):
        assert bob.accept(token, 404) == NOT_FOUND
    for bad in ("", None, 5, "x" * 1000, ["x"]):
        bob.ask("POST", "/invitations/accept", 422, json={"token": bad})
    assert alice.participants(thread) == []


def kept(server, identity: str) -> bool:
    with sqlite3.connect(f"file:{server.folder}/heddle.db?mode=ro", uri=True) as database:
        found = database.execute("SELECT count(*) FROM invitations WHERE invitation_id = ?", (identity,)).fetchone()
    return found[0] > 0


def test_an_expired_one_is_not_shown_and_not_accepted(secured):
    server = secured(graphs=GRAPHS, options=["--ttl-sweep-interval", "0"])  # never sweeps
    with crowd(server, "alice", "bob") as people:
        alice, bob = people["alice"], people["bob"]
        thread = alice.thread()
        made = alice.invite(thread, expires_in=1)
        wait_for(lambda: alice.ask("GET", f"/threads/{thread}/invitations") == [], what="an invitation that expires")
        assert kept(server, made["invitation_id"])
        assert bob.accept(made["token"], 404) == NOT_FOUND


def test_anothers_invitation_cannot_be_taken_back(people):
    alice, bob = people["alice"], people["bob"]
    thread, other, own = alice.thread(), alice.thread(), bob.thread()
    made = alice.invite(thread)
    path = f"invitations/{made['invitation_id']}"
    assert bob.ask("DELETE", f"/threads/{own}/{path}", 404) == NOT_FOUND
    assert alice.ask("DELETE", f"/threads/{other}/{path}", 404) == NOT_FOUND
    alice.ask("DELETE", f"/threads/{thread}/{path}", 204)
    assert alice.ask("DELETE", f"/threads/{thread}/{path}", 404) == NOT_FOUND


def test_invalid_requests_are_refused(people):
    alice = people["alice"]
    thread = alice.thread()
    for bad in (
        {"role": "owner"}, {"role": 3}, {"uses": 0}, {"uses": 1001}, {"uses": "1"}, {"uses": 1.5}, {"expires_in": 0},
        {"expires_in": -1}, {"expires_in": 10**12}, {"expires_in": "soon"},
    ):  # fmt: skip
        alice.invite(thread, 422, **bad)
    assert alice.ask("GET", f"/threads/{thread}/invitations") == []


def test_a_thread_has_so_many_invitations(people):
    alice = people["alice"]
    thread = alice.thread()
    for _ in range(100):
        alice.invite(thread)
    assert "at most 100 invitations" in alice.invite(thread, 409)["detail"]
    assert len(alice.ask("GET", f"/threads/{thread}/invitations")) == 100


def test_a_user_with_a_thread_of_that_id_gets_a_conflict(people):
    alice, bob = people["alice"], people["bob"]
    thread = alice.thread()
    bob.ask("POST", "/threads", json={"thread_id": thread})
    made = alice.invite(thread)
    assert "another thread" in bob.accept(made["token"], 409)["detail"]
    bob.ask("DELETE", f"/threads/{thread}", 204)
    assert bob.accept(made["token"])["thread_id"] == thread


def test_credentials_are_needed(people, server):
    thread = people["alice"].thread()
    token = people["alice"].invite(thread)["token"]
    nobody = Person(server)
    nobody.accept(token, 401)
    nobody.http.close()
    assert people["bob"].accept(token)["thread_id"] == thread
