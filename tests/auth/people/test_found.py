"""Shared threads among the user's own threads: search, count, and the rest after removal."""

from __future__ import annotations

import sqlite3

import pytest
from plain import human
from sharing import GRAPHS, crowd


@pytest.fixture
def world(secured, store):
    """Bob has three threads; alice and the weavers share others with him."""
    server = secured(store=store, graphs=GRAPHS)
    with crowd(server, "alice", "bob@weavers", "carol") as people:
        alice, bob = people["alice"], people["bob"]
        threads = {}
        # Created alternately, so that the order of creation mixes them.
        for n in range(3):
            threads[f"own{n}"] = bob.thread(metadata={"n": n, "kind": "own"})
            threads[f"direct{n}"] = alice.thread(metadata={"n": n, "kind": "shared"})
            threads[f"org{n}"] = alice.thread(metadata={"n": n, "kind": "shared"})
            alice.share(threads[f"direct{n}"], "editor" if n == 0 else "viewer", subject="bob")
            alice.share(threads[f"org{n}"], "viewer", organisation="weavers")
        alice.thread(metadata={"n": 0, "kind": "secret"})
        yield server, people, threads


def names(threads: dict, found: list[dict]) -> list[str]:
    by_id = {value: key for key, value in threads.items()}
    return [by_id[each["thread_id"]] for each in found]


EVERYTHING = [f"{kind}{n}" for n in range(3) for kind in ("own", "direct", "org")]


def count(person, **body) -> int:
    return person.ask("POST", "/threads/count", json=body)


def test_shared_threads_are_found(world):
    _, people, threads = world
    bob = people["bob"]
    found = bob.found(sort_order="asc")
    assert names(threads, found) == EVERYTHING
    roles = dict(zip(names(threads, found), [each["role"] for each in found], strict=True))
    assert roles == {
        name: "owner" if name.startswith("own") else "editor" if name == "direct0" else "viewer" for name in EVERYTHING
    }
    assert names(threads, bob.found()) == EVERYTHING[::-1]
    assert count(bob) == 9
    assert count(people["carol"]) == 0 and people["carol"].found() == []
    assert count(people["alice"]) == 7 and all(each["role"] == "owner" for each in people["alice"].found())


def test_filters_sorting_and_pages(world):
    _, people, threads = world
    bob, alice = people["bob"], people["alice"]
    assert names(threads, bob.found(metadata={"kind": "shared"}, sort_order="asc")) == [
        name for name in EVERYTHING if not name.startswith("own")
    ]
    assert count(bob, metadata={"kind": "shared"}) == 6 and count(bob, metadata={"n": 1}) == 3
    assert count(bob, metadata={"kind": "secret"}) == 0
    assert count(bob, metadata={"owner": "alice"}) == 6 and count(bob, metadata={"owner": "bob"}) == 3
    # The pages together are the whole result; totals count everything.
    pages = []
    for offset in range(0, 12, 4):
        answer = bob.http.post("/threads/search", json={"limit": 4, "offset": offset, "sort_order": "asc"})
        assert answer.headers["x-pagination-total"] == "9"
        pages += answer.json()
    assert names(threads, pages) == EVERYTHING
    # Other orders.
    by_id = [each["thread_id"] for each in bob.found(sort_by="thread_id", sort_order="asc")]
    assert by_id == sorted(threads[name] for name in EVERYTHING)
    alice.ask("PATCH", f"/threads/{threads['direct1']}", json={"metadata": {"touched": True}})
    assert names(threads, bob.found(sort_by="updated_at", limit=1)) == ["direct1"]
    # By ids, and with selected fields only.
    wanted = [threads[name] for name in ("own1", "direct2")]
    found = bob.found(ids=wanted, select=["thread_id", "role"], sort_order="asc")
    assert found == [
        {"thread_id": threads["own1"], "role": "owner"}, {"thread_id": threads["direct2"], "role": "viewer"},
    ]  # fmt: skip
    assert people["carol"].found(ids=wanted) == []


def test_values_and_states_of_shared_threads(world):
    _, people, threads = world
    bob, alice = people["bob"], people["alice"]
    thread = threads["direct0"]
    alice.ask("POST", f"/threads/{thread}/runs/wait", json={"assistant_id": "echo", "input": human("hello")})
    values = alice.ask("GET", f"/threads/{thread}")["values"]
    assert values["messages"][0]["content"] == "hello"
    assert bob.ask("GET", f"/threads/{thread}")["values"] == values
    (found,) = bob.found(ids=[thread], extract={"first": "values.messages[0].content"})
    assert found["values"] == values and found["extracted"] == {"first": "hello"}
    assert names(threads, bob.found(values={"messages": values["messages"]})) == ["direct0"]
    assert count(bob, values={"messages": values["messages"]}) == 1
    assert count(bob, status="idle") == 9 and count(bob, status="busy") == 0


def test_threads_no_longer_shared_are_not_found(world):
    _, people, threads = world
    bob, alice = people["bob"], people["alice"]
    for name, whom in (("direct0", {"subject": "bob"}), ("org1", {"organisation": "weavers"})):
        (made,) = [each for each in alice.participants(threads[name]) if whom.items() <= each.items()]
        alice.ask("DELETE", f"/threads/{threads[name]}/participants/{made['participant_id']}", 204)
        bob.ask("GET", f"/threads/{threads[name]}", 404)
    alice.ask("DELETE", f"/threads/{threads['direct2']}", 204)
    assert names(threads, bob.found(sort_order="asc")) == ["own0", "org0", "own1", "direct1", "own2", "org2"]
    assert count(bob) == 6


def test_a_thread_shared_twice_is_listed_once(world):
    _, people, threads = world
    bob, alice = people["bob"], people["alice"]
    alice.share(threads["org0"], "editor", subject="bob")
    assert count(bob) == 9
    (found,) = bob.found(ids=[threads["org0"]])
    assert found["role"] == bob.ask("GET", f"/threads/{threads['org0']}")["role"] == "editor"


def test_a_thread_has_so_many_participants(secured):
    server = secured(graphs=GRAPHS)
    with crowd(server, "alice", "bob") as people:
        alice, bob = people["alice"], people["bob"]
        thread = alice.thread()
        alice.share(thread, "viewer", subject="first")
        token = alice.invite(thread)["token"]
        with sqlite3.connect(f"{server.folder}/heddle.db", timeout=60) as database:
            ((_, *row),) = database.execute("SELECT * FROM participants").fetchall()
            places = ", ".join("?" * (len(row) + 1))
            database.executemany(
                f"INSERT INTO participants VALUES ({places})", [(f"member{n:016}", *row) for n in range(999)]
            )
        assert "at most 1000 participants" in alice.share(thread, "viewer", 409, subject="bob")["detail"]
        assert "at most 1000 participants" in bob.accept(token, 409)["detail"]
        assert len(alice.participants(thread)) == 1000
        (first,) = [each for each in alice.participants(thread) if not each["participant_id"].startswith("member")]
        alice.ask("DELETE", f"/threads/{thread}/participants/{first['participant_id']}", 204)
        assert bob.accept(token)["role"] == "viewer"


def test_deletion_leaves_no_rows(secured):
    server = secured(graphs=GRAPHS)
    with crowd(server, "alice", "bob") as people:
        alice = people["alice"]
        thread, other = alice.thread(), alice.thread()
        for each in (thread, other):
            alice.share(each, "viewer", subject="bob")
            alice.share(each, "editor", organisation="weavers")
            alice.invite(each, uses=5)
        alice.ask("DELETE", f"/threads/{thread}", 204)
    server.stop()
    with sqlite3.connect(f"file:{server.folder}/heddle.db?mode=ro", uri=True) as database:
        left = {
            table: database.execute(f"SELECT thread_id, count(*) FROM {table} GROUP BY thread_id").fetchall()
            for table in ("participants", "invitations")
        }
    assert left == {"participants": [(other, 2)], "invitations": [(other, 1)]}
