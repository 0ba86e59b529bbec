"""Several people in a room: what each of them sees and may change."""

from __future__ import annotations

import pytest
from programs import wait_for
from sharing import GRAPHS, Open, crowd


@pytest.fixture
def world(secured, store):
    """Alice's room, with an editor and a viewer; sam is a stranger."""
    server = secured(store=store, graphs=GRAPHS)
    with crowd(server, "alice", "edit", "vera", "sam") as people:
        thread = people["alice"].thread()
        people["alice"].share(thread, "editor", subject="edit")
        people["alice"].share(thread, "viewer", subject="vera")
        yield people, f"/threads/{thread}"


def say(person, path, text, **more):
    return person.ask("POST", f"{path}/room/messages", 201, json={"content": text, **more})["message"]


def contents(person, path):
    return [each["content"] for each in person.ask("GET", f"{path}/room/messages")]


def test_people_are_listed_by_their_subjects(world):
    people, path = world
    room = people["vera"].ask("GET", f"{path}/room")
    assert [each["id"] for each in room["people"]] == ["alice", "vera", "edit"]
    assert room["me"] == {"type": "person", "id": "vera", "name": "vera"}
    for method, rest in (("GET", ""), ("GET", "/messages"), ("PUT", ""), ("POST", "/stop"), ("POST", "/typing")):
        people["sam"].ask(method, f"{path}/room{rest}", 404, **({"json": {}} if method != "GET" else {}))


def test_editors_change_the_agents_only(world):
    people, path = world
    put = {"json": {"agents": [{"assistant_id": "echo", "name": "Echo"}]}}
    assert people["edit"].ask("PUT", f"{path}/room", **put)["agents"][0]["name"] == "Echo"
    for setting in ({"answers": "editors"}, {"default_assistant_id": None}, {"presence": False}, {"context": {}}):
        people["edit"].ask("PUT", f"{path}/room", 403, json={**put["json"], **setting})
    people["vera"].ask("PUT", f"{path}/room", 403, **put)
    people["alice"].ask("PUT", f"{path}/room", json={"answers": "editors"})


def test_an_agent_of_another_person_stays_in_the_room(world):
    people, path = world
    body = {"graph_id": "echo", "name": "Private"}
    private = people["alice"].ask("POST", "/assistants", json=body)["assistant_id"]
    people["edit"].ask("PUT", f"{path}/room", 422, json={"agents": [{"assistant_id": private}]})
    people["alice"].ask("PUT", f"{path}/room", json={"agents": [{"assistant_id": private}]})
    both = [{"assistant_id": private}, {"assistant_id": "echo"}]
    agents = people["edit"].ask("PUT", f"{path}/room", json={"agents": both})["agents"]
    assert [each["name"] for each in agents] == ["Private", "echo"]


def test_authors_and_the_owner_delete(world):
    people, path = world
    messages = [say(people["edit"], path, f"text {n}")["id"] for n in range(2)]
    own = say(people["alice"], path, "mine")["id"]
    for who, status in {"vera": 403, "sam": 404}.items():
        people[who].ask("DELETE", f"{path}/room/messages/{messages[0]}", status)
    people["edit"].ask("DELETE", f"{path}/room/messages/{own}", 403)
    people["edit"].ask("DELETE", f"{path}/room/messages/{messages[0]}")
    people["alice"].ask("DELETE", f"{path}/room/messages/{messages[1]}")
    assert contents(people["vera"], path) == [None, None, "mine"]


def test_versions_are_for_the_author_and_the_owner(world):
    people, path = world
    message = say(people["edit"], path, "first")["id"]
    for who, seen in {"edit": ["first"], "alice": ["first"], "vera": []}.items():
        shown = people[who].ask("GET", f"{path}/room/messages/{message}")
        assert [each["content"] for each in shown["versions"]] == seen and shown["content"] == "first"
    people["edit"].ask("DELETE", f"{path}/room/messages/{message}")
    for who, seen in {"edit": ["first"], "alice": ["first"], "vera": []}.items():
        shown = people[who].ask("GET", f"{path}/room/messages/{message}")
        assert [each["content"] for each in shown["versions"]] == seen and shown["content"] is None


def test_unread_messages_are_each_persons_own(world):
    people, path = world
    for text in ("one", "two", "three"):
        say(people["alice"], path, text)
    say(people["edit"], path, "four")
    people["vera"].ask("PUT", f"{path}/room/read", json={"seq": 2})
    unread = {who: people[who].ask("GET", path)["unread"] for who in ("alice", "edit", "vera")}
    assert unread == {"alice": 1, "edit": 3, "vera": 2}
    assert people["vera"].found()[0]["unread"] == 2


def test_an_inbox_shows_what_its_owner_may_see(world):
    people, path = world
    first = say(people["alice"], path, "hello @vera")
    second = say(people["edit"], path, "and again @vera and @alice")
    inbox = people["vera"].ask("GET", "/mentions")
    assert [each["message"]["id"] for each in inbox] == [second["id"], first["id"]]
    assert all(path == f"/threads/{each['thread_id']}" for each in inbox)
    older = people["vera"].ask("GET", "/mentions", params={"before": inbox[0]["created_at"], "limit": 1})
    assert older == inbox[1:]
    assert [each["message"]["id"] for each in people["alice"].ask("GET", "/mentions")] == [second["id"]]
    people["edit"].ask("DELETE", f"{path}/room/messages/{second['id']}")
    assert [each["message"]["id"] for each in people["vera"].ask("GET", "/mentions")] == [first["id"]]
    assert people["sam"].ask("GET", "/mentions") == []
    vera = next(each for each in people["alice"].participants(path.split("/")[2]) if each.get("subject") == "vera")
    people["alice"].ask("DELETE", f"{path}/participants/{vera['participant_id']}", 204)
    assert people["vera"].ask("GET", "/mentions") == []
    people["vera"].ask("GET", f"{path}/room", 404)


def test_editors_see_who_is_here(world):
    people, path = world
    stream = {"params": {"stream_mode": "room"}}
    editor = Open(people["edit"], "GET", f"{path}/stream", **stream).wait_open("room/presence")
    viewer = Open(people["vera"], "GET", f"{path}/stream", **stream)
    wait_for(lambda: editor.text.count("room/presence") == 2, what="the viewer to be present")
    assert '"id":"vera"' in editor.text.split("room/presence")[-1]
    people["alice"].ask("POST", f"{path}/room/typing", 204)
    people["vera"].ask("POST", f"{path}/room/typing", 403)
    people["vera"].ask("PUT", f"{path}/room/read", json={"seq": 0})
    say(people["alice"], path, "hello")
    people["vera"].ask("PUT", f"{path}/room/read", json={"seq": 1})
    wait_for(lambda: "room/read" in editor.text and "room/message" in viewer.text, what="the events")
    assert '"person":{"type":"person","id":"alice"' in editor.text
    assert '"reader":{"type":"person","id":"vera","name":"vera"},"seq":1' in editor.text
    assert not {"room/presence", "room/typing", "room/read"} & set(viewer.text.replace("\n", " ").split())
    vera = next(each for each in people["alice"].participants(path.split("/")[2]) if each.get("subject") == "vera")
    people["alice"].ask("DELETE", f"{path}/participants/{vera['participant_id']}", 204)
    viewer.wait_end()
    wait_for(lambda: editor.text.count("room/presence") == 3, what="the viewer to be gone")
    assert '"id":"vera"' not in editor.text.split("room/presence")[-1]
