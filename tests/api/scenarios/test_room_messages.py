"""Chat messages of a room: lists, versions, runs, ratings, deletion, read marks, stopping."""

import os
import uuid

import httpx
import pytest
from plain import Thread, events, texts, until
from server import Server
from table import refused

pytestmark = pytest.mark.beyond_peer("has no rooms")


def stores() -> dict[str, str | None]:
    """A database of SQLite, and a schema of PostgreSQL if there is a server."""
    found = {"sqlite": None}
    postgres = os.environ.get("HEDDLE_TEST_PG_URL")
    if postgres:
        found["postgres"] = f"{postgres}{'&' if '?' in postgres else '?'}schema=rooms_{uuid.uuid4().hex[:8]}"
    return found


STORES = stores()


@pytest.fixture(scope="module", params=STORES.values(), ids=STORES)
def server(request):
    with Server(store=request.param) as running:
        yield running


@pytest.fixture
def http(server):
    with httpx.Client(base_url=server.url, timeout=60) as client:
        yield client


class Room(Thread):
    """A thread with the agent echo; each plain run adds a message and its answer."""

    def __init__(self, http, **settings):
        super().__init__(http)
        self.ask("PUT", self.path("/room"), json={"agents": [{"assistant_id": "echo"}], **settings})

    def messages(self, **params) -> list[dict]:
        return self.ask("GET", self.path("/room/messages"), params=params)

    def message(self, identity, rest="", **options):
        return self.ask(options.pop("method", "GET"), self.path(f"/room/messages/{identity}{rest}"), **options)


def contents(messages):
    return [each["content"] for each in messages]


@pytest.fixture
def room(http):
    return Room(http)


@pytest.fixture
def talk(room):
    """Four messages: two of the user, two answers."""
    for text in ("one", "Two"):
        room.say("echo", text)
    return room


ALL = ["one", "You said: one", "Two", "You said: Two"]


def test_messages_are_listed_in_pages(talk):
    assert contents(talk.messages()) == ALL
    assert [each["seq"] for each in talk.messages()] == [1, 2, 3, 4]
    assert contents(talk.messages(limit=2)) == ALL[2:]
    assert contents(talk.messages(limit=2, before=3)) == ALL[:2]
    assert contents(talk.messages(limit=2, after=0)) == ALL[:2]
    assert contents(talk.messages(limit=2, after=1)) == ALL[1:3]
    assert contents(talk.messages(after=1, before=4)) == ALL[1:3]
    assert contents(talk.messages(order="desc", limit=3)) == ALL[:0:-1]
    assert contents(talk.messages(order="asc", limit=3)) == ALL[1:]
    assert talk.messages(after=4) == [] and talk.messages(before=1) == []


def test_messages_are_found_by_sender_state_and_text(talk):
    agent = talk.messages()[1]["sender"]
    assert agent["type"] == "agent" and agent["name"] == "echo"
    assert contents(talk.messages(sender="user")) == ALL[::2]
    assert contents(talk.messages(sender=agent["id"], limit=1)) == ALL[3:]
    assert talk.messages(sender="stranger") == []
    assert contents(talk.messages(state="ok")) == ALL and talk.messages(state="error") == []
    assert contents(talk.messages(text="two")) == ALL[2:]
    assert contents(talk.messages(text="said", limit=1, after=0)) == ALL[1:2]
    assert contents(talk.messages(text="said", sender="user")) == []


def test_a_long_room_is_searched_to_its_end(room):
    needle = room.say("echo", "needle in the hay")["messages"][0]["content"]
    for n in range(40):
        room.say("echo", f"hay {n}")
    assert contents(room.messages(text="NEEDLE", limit=5)) == [needle, f"You said: {needle}"]
    assert contents(room.messages(sender="user", limit=2, after=0)) == [needle, "hay 0"]
    assert len(room.messages()) == 50 and len(room.messages(limit=1000)) == 82


def test_a_message_has_versions_and_runs(talk):
    first, answer = talk.messages()[:2]
    shown = talk.message(first["id"])
    versions = shown.pop("versions")
    assert shown == first and versions == [
        {"version": 1, "content": "one", "metadata": None, "created_at": first["created_at"]}
    ]
    assert answer["reply_to"] == first["id"] and answer["run_id"] and answer["checkpoint_id"]
    assert refused(talk.http, "GET", talk.path("/room/messages/nothing"), 404) == "Message with ID nothing not found"


# ---- ratings


def test_an_answer_is_rated(talk):
    answer = talk.messages()[1]
    path = f"/{answer['id']}/feedback"
    rated = talk.message(answer["id"], "/feedback", method="POST", json={"rating": "up"})["message"]
    [rating] = rated["feedback"]
    assert rating["person"]["id"] == "user" and (rating["rating"], rating["comment"]) == ("up", None)
    assert rated["updated_at"] > answer["updated_at"]
    again = talk.message(answer["id"], "/feedback", method="POST", json={"rating": "down", "comment": "too short"})
    [rating] = again["message"]["feedback"]
    assert (rating["rating"], rating["comment"]) == ("down", "too short")
    assert talk.messages()[1] == again["message"]
    assert talk.message(answer["id"], "/feedback", method="POST", json={})["message"]["feedback"] is None
    for body in ({"rating": "best"}, {"rating": 1}, {"comment": 3}, {"comment": "c" * 4001}):
        refused(talk.http, "POST", talk.path(f"/room/messages{path}"), 422, json=body)
    own = talk.path(f"/room/messages/{talk.messages()[0]['id']}/feedback")
    refused(talk.http, "POST", own, 422, "agents", json={"rating": "up"})


# ---- deletion


def test_a_deleted_message_keeps_its_place(talk):
    first, answer = talk.messages()[:2]
    deleted = talk.message(first["id"], method="DELETE")
    assert deleted["message"] == {
        **first, "content": None, "metadata": None, "state": "deleted", "updated_at": deleted["message"]["updated_at"],
    }  # fmt: skip
    assert deleted["remains"] == ["versions", "run_inputs", "checkpoints", "events"]
    assert contents(talk.messages()) == [None, *ALL[1:]] and talk.messages(text="one") == [answer]
    assert contents(talk.messages(state="deleted")) == [None]
    again = talk.message(first["id"], method="DELETE")
    assert again["message"]["state"] == "deleted" and again["remains"] == deleted["remains"]
    refused(talk.http, "DELETE", talk.path("/room/messages/nothing"), 404)


def test_the_event_of_a_message_without_runs_remains(room):
    note = room.ask("POST", room.path("/room/messages"), 201, json={"content": "a note"})["message"]
    assert room.message(note["id"], method="DELETE")["remains"] == ["versions", "events"]
    assert "a note" in stored_events(room)
    for params in ({"purge": "true"}, {}):
        assert room.message(note["id"], method="DELETE", params=params)["remains"] == []
    assert "a note" not in stored_events(room)


def stored_events(room):
    """All stored events of the thread, as text."""
    request = room.http.build_request(
        "GET", room.path("/stream"), params={"stream_mode": ["room", "run_modes"]}, headers={"Last-Event-ID": "-1"}
    )
    room.ask("PUT", room.path("/room"), json={"presence": True})
    answer = room.http.send(request, stream=True)
    text = ""
    for piece in answer.iter_text():
        text += piece
        if "room/presence" in text:
            break
    answer.close()
    return text


def everything(room):
    paths = ("/state", "/history", "/runs", "/timeline", "/messages", "/branches", "/room/messages")
    shown = "".join(room.http.get(room.path(path), params={"limit": 1000}).text for path in paths)
    return shown + stored_events(room)


def test_a_purged_message_leaves_nothing(room):
    room.say("echo", "before")
    room.say("echo", "a secret", stream_resumable=True)
    room.say("echo", "after", stream_resumable=True)
    before, secret, answer, after = (room.messages()[n] for n in (0, 2, 3, 4))
    assert everything(room).count("a secret") > 5
    purged = room.message(secret["id"], method="DELETE", params={"purge": "true"})
    assert purged["message"]["state"] == "deleted" and purged["remains"] == []
    room.message(answer["id"], method="DELETE", params={"purge": "true"})
    assert "secret" not in everything(room)
    assert room.message(secret["id"])["versions"] == []
    assert contents(room.messages()) == ["before", "You said: before", None, None, "after", "You said: after"]
    assert texts(room.state()["values"]) == ["before", "You said: before"]
    assert len(room.ask("GET", room.path("/runs"))) == 1 and room.record()["status"] == "idle"
    assert texts(room.say("echo", "more"))[-1] == "You said: more"
    assert contents(room.messages())[-1] == "You said: more"
    again = room.message(secret["id"], method="DELETE", params={"purge": "true"})
    assert again["message"]["state"] == "deleted"
    assert texts(room.state()["values"])[-1] == "You said: more"
    assert before["id"] and after["id"]


def test_the_purge_of_the_first_message_removes_the_line(talk):
    first = talk.messages()[0]
    talk.message(first["id"], method="DELETE", params={"purge": "true"})
    assert talk.ask("GET", talk.path("/runs")) == [] and talk.ask("GET", talk.path("/agents")) == []
    assert contents(talk.messages()) == [None, *ALL[1:]]
    assert texts(talk.say("echo", "again"))[-2:] == ["again", "You said: again"]


def test_a_busy_thread_is_not_purged(room):
    room.say("echo", "one")
    run = room.ask("POST", room.path("/runs"), json={"assistant_id": "nap", "input": {"ms": 600_000}})["run_id"]
    first = room.messages()[0]
    path = room.path(f"/room/messages/{first['id']}")
    assert refused(room.http, "DELETE", path, 409, params={"purge": "true"}) == "Thread is busy"
    assert room.messages()[0] == first
    room.ask("DELETE", path)
    room.ask("POST", room.path(f"/runs/{run}/cancel"), params={"wait": "true"})
    refused(room.http, "DELETE", path, 422, "purge", params={"purge": "all"})


def test_a_message_behind_an_open_question_is_not_purged(room):
    body = {"id": "asked", "content": "shall we?", "mentions": ["approval"]}
    room.http.post(room.path("/room/messages/stream"), json=body).raise_for_status()
    path = room.path("/room/messages/asked")
    refused(room.http, "DELETE", path, 409, "open question", params={"purge": "true"})
    [question] = room.messages(state="pending")
    assert contents(room.messages())[0] == "shall we?"
    refused(room.http, "DELETE", room.path(f"/room/messages/{question['id']}"), 409, "withdraw")
    room.message(question["id"], "/withdraw", method="POST")
    room.message("asked", method="DELETE", params={"purge": "true"})
    deleted = room.message(question["id"], method="DELETE", params={"purge": "true"})["message"]
    assert deleted["interrupts"] is None and "shall we" not in everything(room)


def test_changes_are_events_of_the_room(talk):
    answer = talk.messages()[1]
    with httpx.Client(base_url=talk.http.base_url, timeout=60) as http:
        with http.stream("GET", talk.path("/stream"), params={"stream_mode": "room"}) as stream:
            pieces = stream.iter_text()
            talk.message(answer["id"], "/feedback", method="POST", json={"rating": "up"})
            talk.message(answer["id"], method="DELETE")
            text = ""
            while text.count("event: room/message") < 2 or not text.endswith("\n\n"):
                text += next(pieces)
    shown = [each for each in events(text) if each[0] == "room/message"]
    rated, deleted = [(name, data["message"], int(number)) for name, data, number in shown]
    assert rated[2] < deleted[2] and rated[1]["feedback"]
    assert deleted[1]["state"] == "deleted" and deleted[1]["content"] is None
    stored = talk.http.build_request(
        "GET", talk.path("/stream"), params={"stream_mode": "room"}, headers={"Last-Event-ID": str(rated[2])}
    )
    answer = talk.http.send(stored, stream=True)
    assert '"deleted"' in next(answer.iter_text())
    answer.close()


# ---- read marks


def test_a_read_mark_moves_forward(talk):
    assert talk.record()["unread"] == 2  # the answers
    assert talk.ask("PUT", talk.path("/room/read"), json={"seq": 2}) == {"seq": 2, "unread": 1}
    assert talk.ask("PUT", talk.path("/room/read"), json={"seq": 1}) == {"seq": 2, "unread": 1}
    assert talk.ask("GET", talk.path("/room"))["unread"] == 1
    assert talk.ask("PUT", talk.path("/room/read"), json={"seq": 99}) == {"seq": 4, "unread": 0}
    talk.say("echo", "three")
    assert talk.record()["unread"] == 1


# ---- stopping


def test_all_runs_of_a_room_are_stopped(room):
    assert room.ask("POST", room.path("/room/stop")) == {"cancelled": []}
    runs = [
        room.ask("POST", room.path("/runs"), json={"assistant_id": "nap", "input": {"ms": 600_000}})["run_id"]
        for _ in range(2)
    ]
    until(lambda: room.ask("GET", room.path(f"/runs/{runs[0]}"))["status"] == "running")
    stopped = room.ask("POST", room.path("/room/stop"))["cancelled"]
    assert [each["run_id"] for each in stopped] == runs
    assert {each["status"] for each in stopped} == {"interrupted"}
    assert {room.ask("GET", room.path(f"/runs/{run}"))["status"] for run in runs} == {"interrupted"}


# ---- presence


class Reader:
    """An open `room` stream of the thread."""

    def __init__(self, room):
        self.http = httpx.Client(base_url=room.http.base_url, timeout=60)
        self.request = self.http.build_request("GET", room.path("/stream"), params={"stream_mode": "room"})
        self.answer = self.http.send(self.request, stream=True)
        self.pieces, self.text = self.answer.iter_text(), ""

    def next(self) -> tuple[str, dict, str | None]:
        while "\n\n" not in self.text:
            self.text += next(self.pieces)
        frame, self.text = self.text.split("\n\n", 1)
        found = events(frame + "\n\n")
        return found[0] if found else self.next()

    def close(self) -> None:
        self.answer.close()
        self.http.close()


PERSON = {"type": "person", "id": "user", "name": "User"}


def test_people_see_each_other(talk):
    reader = Reader(talk)
    assert reader.next() == ("room/presence", {"people": [PERSON]}, None)
    for _ in range(3):
        assert talk.http.post(talk.path("/room/typing")).status_code == 204
    assert reader.next() == ("room/typing", {"person": PERSON}, None)
    for seq in (1, 2, 3):
        talk.ask("PUT", talk.path("/room/read"), json={"seq": seq})
    read = reader.next()
    while read[1]["seq"] < 3:  # of several within a second, the last is sent
        assert read[0] == "room/read" and read[1]["reader"] == PERSON
        read = reader.next()
    other = Reader(talk)
    assert reader.next() == ("room/presence", {"people": [PERSON]}, None)
    other.close()
    reader.close()


def test_a_room_without_presence_is_quiet(talk):
    talk.ask("PUT", talk.path("/room"), json={"presence": False})
    reader = Reader(talk)
    assert talk.http.post(talk.path("/room/typing")).status_code == 204
    talk.ask("PUT", talk.path("/room/read"), json={"seq": 1})
    talk.say("echo", "three")
    assert reader.next()[0].startswith("room/message")
    reader.close()
