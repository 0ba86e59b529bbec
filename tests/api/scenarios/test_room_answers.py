"""What runs leave in a room: answers, questions, and the turns of clients that know no rooms."""

import os
import uuid

import httpx
import pytest
from plain import Thread, events, human, texts, until
from server import Server

pytestmark = pytest.mark.beyond_peer("has no rooms")


def stores() -> dict[str, str | None]:
    """A database of SQLite, and a schema of PostgreSQL if there is a server."""
    found = {"sqlite": None}
    postgres = os.environ.get("HEDDLE_TEST_PG_URL")
    if postgres:
        found["postgres"] = f"{postgres}{'&' if '?' in postgres else '?'}schema=answers_{uuid.uuid4().hex[:8]}"
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
    """A thread that is used as a room."""

    def settings(self, **body) -> dict:
        return self.ask("PUT", self.path("/room"), json=body)

    def messages(self) -> list[dict]:
        return self.ask("GET", self.path("/room/messages"))

    def message(self, identity: str) -> dict:
        return self.ask("GET", self.path(f"/room/messages/{identity}"))

    def post(self, content, **body) -> dict:
        return self.ask("POST", self.path("/room/messages"), 201, json={"content": content, **body})

    def answers(self, content, **body) -> list[dict]:
        """Posts a message; returns the answers to it."""
        result = self.post(content, **body)
        for run in result["runs"]:
            self.ask("GET", self.path(f"/runs/{run['run_id']}/join"))
        rows = self.ask("GET", self.path(f"/room/messages/{result['message']['id']}/runs"))
        return [self.message(row["answer"]) for row in rows]

    def withdraw(self, identity: str, status=200):
        return self.ask("POST", self.path(f"/room/messages/{identity}/withdraw"), status, json={})


@pytest.fixture
def room(http):
    room = Room(http)
    room.settings()
    return room


def said(messages):
    return [(message["sender"]["name"], message["content"], message["state"]) for message in messages]


# ---- answers


def test_an_answer_is_a_message_of_the_room(room, http):
    echo = http.get("/assistants/echo").json()["assistant_id"]
    [answer] = room.answers("hello", mentions=["echo"])
    [asked, listed] = room.messages()
    assert listed == {key: value for key, value in answer.items() if key != "versions"}
    assert (answer["seq"], answer["state"], answer["version"]) == (2, "ok", 1)
    assert answer["sender"] == {"type": "agent", "id": echo, "name": "echo"}
    assert answer["content"] == "You said: hello" and answer["reply_to"] == asked["id"]
    assert answer["run_id"] == asked["runs"][0]["run_id"] and asked["runs"][0]["answer"] == answer["id"]
    assert asked["runs"][0]["status"] == "success"
    [row] = room.ask("GET", room.path(f"/room/messages/{asked['id']}/runs"))
    head = room.state(assistant_id="echo")["checkpoint"]["checkpoint_id"]
    assert row["checkpoint_id"] == answer["checkpoint_id"] == head and row["head_before"] is None


def test_several_agents_answer(room):
    room.answers("who is there?", mentions=["echo", "my-assistant"])
    assert sorted(message["sender"]["name"] for message in room.messages()[1:]) == ["echo", "my-assistant"]
    assert [message["seq"] for message in room.messages()] == [1, 2, 3]


def test_a_failed_run_leaves_its_error(room):
    room.http.post(room.path("/runs/wait"), json={"assistant_id": "failing", "input": {}})
    [answer] = room.messages()
    assert answer["state"] == "error" and answer["content"] is None
    assert answer["error"]["error"] and answer["error"]["message"]


def test_a_cancelled_run_leaves_a_stopped_message(room):
    result = room.post("count", mentions=["slow"])
    room.ask("POST", room.path("/room/stop"), json={})
    [message] = until(lambda: room.messages()[1:])
    assert message["state"] == "stopped" and message["reply_to"] == result["message"]["id"]


def test_a_run_that_is_rolled_back_leaves_nothing(room):
    [run] = room.post("count", mentions=["slow"])["runs"]
    room.ask("POST", room.path(f"/runs/{run['run_id']}/cancel?wait=true&action=rollback"))
    [asked] = room.messages()
    assert asked["runs"] == []


def test_messages_of_a_run_that_is_rolled_back_reach_the_next_run(room):
    [run] = room.post("count", mentions=["slow"])["runs"]
    room.ask("POST", room.path(f"/runs/{run['run_id']}/cancel?wait=true&action=rollback"))
    [run] = room.post("again", mentions=["slow"])["runs"]
    given = room.ask("GET", room.path(f"/runs/{run['run_id']}"))["kwargs"]["input"]["messages"]
    assert texts({"messages": given}) == ["User: count", "again"]
    room.ask("POST", room.path("/room/stop"), json={})


def test_a_reader_sees_the_answer(room):
    room.answers("hello", mentions=["echo"])
    [asked, answer] = room.messages()
    with room.http.stream(
        "GET", room.path("/stream"), params={"stream_mode": "room"}, headers={"Last-Event-ID": "-1"}
    ) as stream:
        text = ""
        for part in stream.iter_text():
            text += part
            if '"status":"success"' in text and text.endswith("\n\n"):
                break
    found = [(name, data) for name, data, _ in events(text) if name and name.startswith("room/")]
    assert [name for name, _ in found][-2:] == ["room/message", "room/run"]
    assert found[-2][1]["message"] == answer
    assert found[-1][1]["run"]["answer"] == answer["id"] and found[-1][1]["run"]["trigger"] == asked["id"]


# ---- questions


def test_a_question_waits_for_its_answer(room):
    [question] = room.answers("hello", mentions=["approval"])
    assert question["state"] == "pending" and question["content"] is None
    assert "Shall I answer?" in str(question["interrupts"])
    assert room.record()["status"] == "interrupted"
    [answer] = room.answers("yes", reply_to=question["id"])
    assert answer["content"] == "Approved: yes"
    assert room.message(question["id"])["state"] == "ok"
    assert room.record()["status"] == "idle"


def test_a_question_is_withdrawn(room):
    [question] = room.answers("hello", mentions=["approval"])
    withdrawn = room.withdraw(question["id"])["message"]
    assert (withdrawn["id"], withdrawn["state"]) == (question["id"], "stopped")
    assert room.message(question["id"])["state"] == "stopped"
    record = room.record()
    assert (record["status"], record["interrupts"]) == ("idle", {})
    [other] = room.answers("hello again", mentions=["approval"])
    assert other["state"] == "pending"


def test_a_message_behind_a_withdrawn_question_gets_its_run(room):
    [question] = room.answers("hello", mentions=["approval"])
    waiting = room.post("and me?", mentions=["approval"])
    assert waiting["runs"] == []
    room.withdraw(question["id"])
    [asked] = until(lambda: [m for m in room.messages() if m["id"] == waiting["message"]["id"] and m["runs"]])
    assert asked["runs"][0]["answer"]


def test_only_open_questions_are_withdrawn(room):
    [answer] = room.answers("hello", mentions=["echo"])
    before = room.messages()
    assert room.withdraw(answer["id"], 409) == {"detail": "the message is no open question"}
    assert room.withdraw("nothing", 404) == {"detail": "Message with ID nothing not found"}
    assert room.messages() == before


# ---- plain runs


def test_a_plain_run_is_a_turn(room):
    room.run("echo", input=human("hello", "h1"))
    [asked, answer] = room.messages()
    assert said([asked, answer]) == [("User", "hello", "ok"), ("echo", "You said: hello", "ok")]
    assert asked["id"] == "h1" and answer["reply_to"] == "h1"
    assert asked["sender"]["type"] == "person"


def test_an_agent_is_not_given_its_plain_turns_again(room):
    room.run("echo", input=human("hello", "h1"))
    room.answers("and now", mentions=["echo"])
    assert texts(room.state(assistant_id="echo")["values"]) == [
        "hello", "You said: hello", "and now", "You said: and now",
    ]  # fmt: skip


def test_other_agents_are_given_plain_turns(room):
    room.run("echo", input=human("hello", "h1"))
    room.answers("what was said?", mentions=["my-assistant"])
    heard = texts(room.state(assistant_id="my-assistant")["values"])
    assert any("hello" in text and "You said" not in text for text in heard[:2])
    assert any("You said: hello" in text for text in heard[:2])


def test_a_plain_retry_replaces_the_answer(room):
    room.run("echo", input=human("hello", "h1"))
    [_, answer] = room.messages()
    [fork] = [
        state
        for state in room.history(assistant_id="echo")
        if texts(state["values"]) == ["hello"] and state["next"] == ["reply"]
    ]
    room.run("echo", input=None, checkpoint_id=fork["checkpoint"]["checkpoint_id"])
    [asked, old, new] = room.messages()
    assert said([asked, old, new]) == [
        ("User", "hello", "ok"), ("echo", "You said: hello", "stale"), ("echo", "You said: hello", "ok"),
    ]  # fmt: skip
    assert (old["id"], old["replaced_by"], new["replaces"]) == (answer["id"], new["id"], old["id"])


def test_a_plain_edit_replaces_the_turn(room):
    room.run("echo", input=human("one", "h1"))
    room.run("echo", input=human("two", "h2"))
    room.run("echo", input=human("deux", "h3"), checkpoint_id=room.before("h2", assistant_id="echo"))
    assert said(room.messages()) == [
        ("User", "one", "ok"), ("echo", "You said: one", "ok"),
        ("User", "two", "stale"), ("echo", "You said: two", "stale"),
        ("User", "deux", "ok"), ("echo", "You said: deux", "ok"),
    ]  # fmt: skip


def test_an_update_of_the_state_is_no_chat_message(room):
    room.run("echo", input=human("one", "h1"))
    update = {"messages": [{"role": "user", "content": "put in", "id": "h2"}]}
    room.ask("POST", room.path("/state"), json={"values": update})
    room.run("echo", input=human("two", "h3"))
    assert [message["content"] for message in room.messages()] == ["one", "You said: one", "two", "You said: two"]


def test_the_timeline_shows_an_answer_once(room, http):
    room.answers("one", mentions=["echo"])
    room.answers("two", mentions=["my-assistant"])
    entries = room.timeline()
    assert [entry["message"]["content"] for entry in entries].count("You said: one") == 1
    assert not any(
        "You said: one" in entry["message"]["content"] for entry in entries if entry["sender"]["type"] != "agent"
    )
    given = room.ask("GET", room.path("/messages"), params={"assistant_id": "my-assistant"})["messages"]
    assert ("agent", "echo") in [(origin["sender"]["type"], origin["sender"]["name"]) for origin in given]


def test_a_thread_that_is_no_room_stays_one(http):
    thread = Room(http)
    thread.run("echo", input=human("hello"))
    assert thread.messages() == []


# ---- agents that address agents


@pytest.fixture
def agent(http):
    """Creates assistants with unique names and deletes them."""
    made = []

    def make(name, graph="echo") -> str:
        made.append(http.post("/assistants", json={"graph_id": graph, "name": name}).json()["assistant_id"])
        return made[-1]

    yield make
    for each in made:
        http.delete(f"/assistants/{each}")


def settled(room, count):
    """Waits for `count` messages and the end of all runs."""
    return until(lambda: len(found := room.messages()) == count and room.record()["status"] == "idle" and found)


def test_an_answer_addresses_another_agent(room, agent):
    clerk, scribe = agent("Clerk"), agent("Scribe")
    room.settings(agents=[{"assistant_id": clerk}, {"assistant_id": scribe}], agents_ask={"depth": 1})
    room.answers("@Clerk greet @scribe", mentions=["Clerk"])
    asked, first, second = settled(room, 3)
    assert first["sender"]["name"] == "Clerk" and second["sender"]["name"] == "Scribe"
    assert first["mentions"] == [{"type": "agent", "id": scribe, "name": "Scribe"}]
    assert second["reply_to"] == first["id"] and first["runs"][0]["answer"] == second["id"]
    [heard] = texts(room.state(assistant_id=scribe)["values"])[-2:-1]
    assert heard == f"Clerk: {first['content']}"
    assert [entry["message"]["content"] for entry in room.timeline()].count(heard) == 0


def test_agents_address_no_agents_unless_the_room_allows_it(room, agent):
    clerk, scribe = agent("Clerk"), agent("Scribe")
    room.settings(agents=[{"assistant_id": clerk}, {"assistant_id": scribe}])
    [answer] = room.answers("greet @scribe", mentions=["Clerk"])
    assert answer["mentions"] == [] and len(settled(room, 2)) == 2


def test_each_agent_runs_once_in_a_chain(room, agent):
    one, two = agent("One"), agent("Two")
    room.settings(agents=[{"assistant_id": one}, {"assistant_id": two}], agents_ask={"depth": 10})
    room.answers("@One and @Two and @One", mentions=["One"])
    assert [message["sender"]["name"] for message in settled(room, 3)] == ["User", "One", "Two"]
    room.answers("again: @One and @Two", mentions=["Two"])
    assert [message["sender"]["name"] for message in settled(room, 6)][3:] == ["User", "Two", "One"]


def test_the_runs_and_the_depth_of_a_chain_are_limited(room, agent):
    names = ["One", "Two", "Three", "Four"]
    ids = [agent(name) for name in names]
    room.settings(agents=[{"assistant_id": each} for each in ids], agents_ask={"depth": 10, "runs": 3})
    room.answers("@Two @Three @Four", mentions=["One"])
    assert len(settled(room, 4)) == 4
    room.settings(agents_ask={"depth": 0})
    room.answers("@Two @Three @Four", mentions=["One"])
    assert len(settled(room, 6)) == 6
