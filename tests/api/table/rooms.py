"""/threads/{id}/room, endpoint by endpoint: responses and refusals."""

import uuid

import pytest
from plain import Thread
from table import refused, refuses_what_is_not_json

pytestmark = pytest.mark.beyond_peer("has no rooms")

DEFAULTS = {
    "default_assistant_id": None, "agents": [], "context": {"messages": 20, "bytes": 65536}, "cascade": {"limit": 5},
    "agents_ask": {"depth": 0, "runs": 8}, "answers": "asker", "presence": True, "last_seq": 0, "unread": 0,
}  # fmt: skip
USER = {"type": "person", "id": "user", "name": "User"}


@pytest.fixture
def thread(http):
    return Thread(http)


@pytest.fixture
def agents(http):
    """Creates named assistants of the graph echo, and deletes them."""
    made = []

    def make(name):
        body = {"graph_id": "echo", "name": name}
        made.append(http.post("/assistants", json=body).json()["assistant_id"])
        return made[-1]

    yield make
    for each in made:
        http.delete(f"/assistants/{each}")


def put(thread, status=200, **body):
    return thread.ask("PUT", thread.path("/room"), status, json=body)


def room(thread):
    return thread.ask("GET", thread.path("/room"))


# ---- GET and PUT /threads/{id}/room


def test_a_thread_that_is_no_room_has_the_defaults(thread):
    assert room(thread) == {"thread_id": thread.id, **DEFAULTS, "people": [USER], "me": USER}


def test_an_unknown_thread_has_no_room(http):
    nowhere = str(uuid.uuid4())
    for method, path in (("GET", "/room"), ("PUT", "/room"), ("GET", "/room/messages"), ("GET", "/room/messages/m")):
        body = {"json": {}} if method == "PUT" else {}
        text = refused(http, method, f"/threads/{nowhere}{path}", 404, **body)
        assert text == f"Thread with ID {nowhere} not found"


def test_settings_are_changed_one_by_one(thread, agents):
    helper = agents("Helper")
    changed = put(thread, context={"messages": 3}, cascade={"limit": 0}, answers="editors", presence=False)
    assert changed["context"] == {"messages": 3, "bytes": 65536} and changed["cascade"] == {"limit": 0}
    assert (changed["answers"], changed["presence"]) == ("editors", False)
    changed = put(thread, agents_ask={"depth": 2, "runs": None}, context={"bytes": 100}, default_assistant_id=helper)
    assert changed["agents_ask"] == {"depth": 2, "runs": 8} and changed["context"] == {"messages": 3, "bytes": 100}
    assert changed["agents"] == [{"assistant_id": helper, "name": "Helper"}]
    assert changed["default_assistant_id"] == helper and changed["answers"] == "editors"
    assert room(thread) == changed and put(thread) == changed
    assert put(thread, default_assistant_id=None)["default_assistant_id"] is None


def test_agents_have_names(thread, agents):
    one, two = agents("Helper"), agents("helper")
    refused(thread.http, "PUT", thread.path("/room"), 422, "two agents are named",
            json={"agents": [{"assistant_id": one}, {"assistant_id": two}]})  # fmt: skip
    assert room(thread)["agents"] == []
    listed = [{"assistant_id": one, "name": "Helper"}, {"assistant_id": two, "name": "Second Helper"}]
    assert put(thread, agents=[{"assistant_id": one}, listed[1]])["agents"] == listed
    echo = put(thread, agents=[{"assistant_id": "echo"}])["agents"]
    assert [each["name"] for each in echo] == ["echo"] and uuid.UUID(echo[0]["assistant_id"])
    assert put(thread, agents=[{"assistant_id": "echo", "name": "Echo"}])["agents"][0]["name"] == "Echo"
    assert put(thread, agents=[])["agents"] == []


@pytest.mark.parametrize(
    ("body", "named"),
    [
        ({"agents": {}}, "agents"),
        ({"agents": ["echo"]}, "agents"),
        ({"agents": [{}]}, "agents"),
        ({"agents": [{"assistant_id": 3}]}, "agents"),
        ({"agents": [{"assistant_id": ""}]}, "agents"),
        ({"agents": [{"assistant_id": "nothing"}]}, "nothing"),
        ({"agents": [{"assistant_id": "00000000-0000-4000-8000-00000000aaaa"}]}, "not found"),
        ({"agents": [{"assistant_id": "echo"}, {"assistant_id": "echo", "name": "b"}]}, "twice"),
        ({"agents": [{"assistant_id": "echo", "name": ""}]}, "name"),
        ({"agents": [{"assistant_id": "echo", "name": 'a"b'}]}, "name"),
        ({"agents": [{"assistant_id": "echo", "name": " a"}]}, "name"),
        ({"agents": [{"assistant_id": "echo", "name": "a\nb"}]}, "name"),
        ({"agents": [{"assistant_id": "echo", "name": "n" * 101}]}, "name"),
        ({"agents": [{"assistant_id": "echo", "name": 4}]}, "agents"),
        ({"default_assistant_id": "nothing"}, "default_assistant_id"),
        ({"default_assistant_id": 3}, "default_assistant_id"),
        ({"context": 3}, "context"),
        ({"context": {"messages": -1}}, "context.messages"),
        ({"context": {"messages": 1001}}, "context.messages"),
        ({"context": {"bytes": 8388609}}, "context.bytes"),
        ({"context": {"bytes": "8"}}, "context.bytes"),
        ({"cascade": {"limit": 1001}}, "cascade.limit"),
        ({"cascade": {"limit": 1.5}}, "cascade.limit"),
        ({"agents_ask": {"depth": 17}}, "agents_ask.depth"),
        ({"agents_ask": {"runs": 101}}, "agents_ask.runs"),
        ({"answers": "everyone"}, "answers"),
        ({"presence": 1}, "presence"),
    ],
)
def test_wrong_settings_change_nothing(http, thread, body, named):
    before = put(thread, context={"messages": 7})
    refused(http, "PUT", thread.path("/room"), 422, named, json={"cascade": {"limit": 9}, **body})
    assert room(thread) == before


def test_a_room_keeps_its_default_agent(http, thread):
    put(thread, default_assistant_id="echo")
    refused(http, "PUT", thread.path("/room"), 422, "default agent", json={"agents": []})
    assert put(thread, agents=[], default_assistant_id=None)["agents"] == []


def test_settings_need_a_body(http, thread):
    refuses_what_is_not_json(http, "PUT", thread.path("/room"))


def test_a_room_is_deleted_with_its_thread(http, thread):
    put(thread, answers="editors")
    assert http.delete(thread.path("")).status_code == 204
    assert http.post("/threads", json={"thread_id": thread.id}).status_code == 200
    assert room(thread)["answers"] == "asker"


# ---- GET /threads/{id}/room/messages


def test_a_new_room_has_no_messages(http, thread):
    assert thread.ask("GET", thread.path("/room/messages")) == []
    put(thread)
    assert thread.ask("GET", thread.path("/room/messages"), params={"text": "a", "sender": "user"}) == []
    for path in ("m", "m/runs"):
        assert refused(http, "GET", thread.path(f"/room/messages/{path}"), 404) == "Message with ID m not found"


@pytest.mark.parametrize(
    ("params", "named"),
    [
        ({"limit": "0"}, "limit"),
        ({"limit": "1001"}, "limit"),
        ({"after": "-1"}, "after"),
        ({"after": "x"}, "after"),
        ({"before": "0"}, "before"),
        ({"state": "gone"}, "state"),
        ({"order": "up"}, "order"),
    ],
)
def test_wrong_lists_of_messages(http, thread, params, named):
    refused(http, "GET", thread.path("/room/messages"), 422, named, params=params)


def test_a_long_list_names_a_limit_that_fits(http, thread):
    text = "x" * 6_000_000
    for _ in range(12):
        thread.ask("POST", thread.path("/room/messages"), 201, json={"content": text})
    detail = refused(http, "GET", thread.path("/room/messages"), 422, "max_answer")
    fits = int(detail.split("limit=")[1].split()[0])
    assert len(thread.ask("GET", thread.path("/room/messages"), params={"limit": fits})) == fits == 11
    assert thread.ask("GET", thread.path("/room/messages"), params={"text": "no x"}) == []
    http.delete(thread.path(""))


# ---- PUT /threads/{id}/room/read, GET /mentions, unread


def test_a_room_without_messages_has_nothing_to_read(http, thread):
    for _ in range(2):
        assert thread.ask("PUT", thread.path("/room/read"), json={"seq": 7}) == {"seq": 0, "unread": 0}
        put(thread)
    assert http.get("/mentions").json() == []


@pytest.mark.parametrize("body", [{}, {"seq": None}, {"seq": -1}, {"seq": "1"}, {"seq": 1.5}])
def test_wrong_read_marks(http, thread, body):
    refused(http, "PUT", thread.path("/room/read"), 422, "seq", json=body)


@pytest.mark.parametrize(
    ("params", "named"), [({"limit": 0}, "limit"), ({"limit": 101}, "limit"), ({"before": "x"}, "before")]
)
def test_wrong_lists_of_mentions(http, params, named):
    refused(http, "GET", "/mentions", 422, named, params=params)


def test_unread_is_shown_of_rooms(http, thread):
    def found():
        body = {"ids": [thread.id], "select": ["thread_id", "unread"]}
        return http.post("/threads/search", json=body).json()

    assert "unread" not in thread.record() and found() == [{"thread_id": thread.id}]
    put(thread)
    assert thread.record()["unread"] == 0 and found() == [{"thread_id": thread.id, "unread": 0}]
