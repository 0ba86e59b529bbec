"""Chat messages of people: which agents they mention, and the runs that they make."""

import os
import uuid
from concurrent.futures import ThreadPoolExecutor

import httpx
import pytest
from gate import Gate
from plain import Thread, events, texts, until
from server import Server

pytestmark = pytest.mark.beyond_peer("has no rooms")


def stores() -> dict[str, str | None]:
    """A database of SQLite, and a schema of PostgreSQL if there is a server."""
    found = {"sqlite": None}
    postgres = os.environ.get("HEDDLE_TEST_PG_URL")
    if postgres:
        found["postgres"] = f"{postgres}{'&' if '?' in postgres else '?'}schema=post_{uuid.uuid4().hex[:8]}"
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

    def post(self, content, status=201, **body) -> dict:
        return self.ask("POST", self.path("/room/messages"), status, json={"content": content, **body})

    def posted(self, content, **body) -> dict:
        """Posts a message and waits for the end of its runs."""
        result = self.post(content, **body)
        for run in result["runs"]:
            self.ask("GET", self.path(f"/runs/{run['run_id']}/join"))
        return result

    def runs(self, message: str) -> list[dict]:
        return self.ask("GET", self.path(f"/room/messages/{message}/runs"))

    def messages(self) -> list[dict]:
        return self.ask("GET", self.path("/room/messages"))

    def settings(self, **body) -> dict:
        return self.ask("PUT", self.path("/room"), json=body)

    def heard(self, agent: str) -> list[str]:
        """The texts of the agent's line."""
        return texts(self.state(assistant_id=agent)["values"])


@pytest.fixture
def room(http):
    return Room(http)


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


# ---- mentions and replies


def test_a_message_without_a_mention_is_chat_only(room):
    result = room.post("hello everybody", metadata={"mood": "good"})
    message = result["message"]
    assert result["runs"] == message["runs"] == message["mentions"] == []
    assert (message["seq"], message["state"], message["version"]) == (1, "ok", 1)
    assert (message["content"], message["metadata"]) == ("hello everybody", {"mood": "good"})
    assert message["sender"] == {"type": "person", "id": "user", "name": "User"}
    assert room.messages() == [message]
    assert room.record()["status"] == "idle"


def test_a_mentioned_agent_answers_and_joins_the_room(room, agent):
    clerk = agent("Clerk")
    result = room.posted("please, @clerk: count")
    [run] = result["runs"]
    assert run["assistant_id"] == clerk
    assert result["message"]["mentions"] == [{"type": "agent", "id": clerk, "name": "Clerk"}]
    assert room.heard(clerk) == ["please, @clerk: count", "You said: please, @clerk: count"]
    assert room.settings()["agents"] == [{"assistant_id": clerk, "name": "Clerk"}]
    [row] = room.runs(result["message"]["id"])
    assert (row["run_id"], row["assistant_id"]) == (run["run_id"], clerk)
    assert row["given"] == [{"message_id": result["message"]["id"], "version": 1}]


def test_one_message_asks_two_agents(room, agent):
    clerk, judge = agent("Clerk"), agent("Judge")
    result = room.posted("@Clerk and @Judge, hello")
    assert [run["assistant_id"] for run in result["runs"]] == [clerk, judge]
    for each in clerk, judge:
        assert room.heard(each)[0] == "@Clerk and @Judge, hello"


def test_the_default_agent_answers_messages_without_a_mention(room, agent):
    clerk, judge = agent("Clerk"), agent("Judge")
    room.settings(agents=[{"assistant_id": clerk}, {"assistant_id": judge}], default_assistant_id=judge)
    assert [run["assistant_id"] for run in room.posted("hello")["runs"]] == [judge]
    assert [run["assistant_id"] for run in room.posted("hello @Clerk")["runs"]] == [clerk]
    assert room.posted("hello", mentions=[])["runs"][0]["assistant_id"] == judge


def test_a_reply_asks_the_agent_of_the_message(room, agent):
    clerk, judge = agent("Clerk"), agent("Judge")
    room.settings(agents=[{"assistant_id": clerk}], default_assistant_id=clerk)
    room.posted("@Judge hello")
    answer = until(lambda: [each for each in room.messages() if each["sender"]["id"] == judge])[0]
    again = room.posted("and now?", reply_to=answer["id"])
    assert [run["assistant_id"] for run in again["runs"]] == [judge]
    assert again["message"]["reply_to"] == answer["id"]


def test_listed_mentions_replace_those_in_the_text(room, agent):
    clerk, judge = agent("Clerk"), agent("Judge")
    assert [run["assistant_id"] for run in room.posted("@Clerk hi", mentions=["Judge"])["runs"]] == [judge]
    assert [run["assistant_id"] for run in room.posted("hi", mentions=[clerk])["runs"]] == [clerk]
    assert room.post("@Clerk hi", mentions=[])["runs"] == []
    assert "is unknown" in room.post("hi", 422, mentions=["nobody"])["detail"]


def test_an_ambiguous_name_is_refused_with_the_candidates(room, agent):
    twins = [agent("Twin"), agent("Twin")]
    detail = room.post("hello @Twin", 422)["detail"]
    assert "ambiguous" in detail and all(each in detail for each in twins)
    assert room.messages() == []
    assert room.posted("hello", mentions=[twins[1]])["runs"][0]["assistant_id"] == twins[1]


def test_an_agent_without_messages_cannot_be_asked(room, agent):
    agent("Form", "questions")
    assert "its input has no messages" in room.post("@Form hello", 422)["detail"]
    assert room.messages() == []


# ---- what they are given


def test_an_agent_is_given_what_was_said_since_its_last_turn(room, agent):
    clerk = agent("Clerk")
    room.post("the sky is blue")
    room.posted("@Clerk one")
    room.post("the sea is green")
    room.posted("@Clerk two")
    assert room.heard(clerk) == [
        "User: the sky is blue", "@Clerk one", "You said: @Clerk one",
        "User: the sea is green", "@Clerk two", "You said: @Clerk two",
    ]  # fmt: skip


def test_the_context_is_limited(room, agent):
    clerk = agent("Clerk")
    room.settings(context={"messages": 2})
    for text in "one", "two", "three":
        room.post(text)
    room.posted("@Clerk go")
    assert room.heard(clerk)[:-1] == ["User: two", "User: three", "@Clerk go"]
    room.posted("@Clerk again")
    assert "User: one" not in room.heard(clerk)


# ---- repeated requests


def test_a_repeated_request_gets_the_first_result(room, agent):
    agent("Clerk")
    first = room.posted("@Clerk once", id="m-1")
    assert first["message"]["id"] == "m-1"
    again = room.post("@Clerk once", 200, id="m-1")
    assert again["runs"] == first["runs"]
    assert again["message"]["seq"] == first["message"]["seq"]
    assert len(room.runs("m-1")) == 1


def test_another_content_under_the_same_id_is_a_conflict(room):
    first = room.post("hello", id="m-1")["message"]
    room.post("goodbye", 409, id="m-1")
    room.post("hello", 409, id="m-1", metadata={"a": 1})
    assert room.messages() == [first]


# ---- what is refused


@pytest.mark.parametrize(
    ("body", "detail"),
    [
        ({}, "content"),
        ({"content": 7}, "content"),
        ({"content": "  "}, "content"),
        ({"content": []}, "content"),
        ({"content": [{"text": "no type"}]}, "content"),
        ({"content": "hi", "id": "a b"}, "id"),
        ({"content": "hi", "id": "x" * 129}, "id"),
        ({"content": "hi", "id": "a%2fb"}, "id"),
        ({"content": "hi", "id": ".."}, "id"),
        ({"content": "hi", "id": "a\0"}, "id"),
        ({"content": "hi", "reply_to": "m-0"}, "reply_to"),
        ({"content": "hi", "metadata": []}, "metadata"),
        ({"content": "hi", "mentions": "Clerk"}, "mentions"),
    ],
)
def test_a_wrong_request_stores_nothing(room, body, detail):
    assert detail in room.ask("POST", room.path("/room/messages"), 422, json=body)["detail"]
    assert room.messages() == []


def test_an_unknown_thread_is_not_found(http):
    missing = str(uuid.uuid4())
    for path in "/room/messages", "/room/messages/stream":
        answer = http.post(f"/threads/{missing}{path}", json={"content": "hi"})
        assert (answer.status_code, answer.json()) == (404, {"detail": f"Thread with ID {missing} not found"})


# ---- questions


def question_of(room) -> dict:
    return until(lambda: [each for each in room.messages() if each["state"] == "pending"])[0]


def test_a_reply_to_a_question_answers_it(room, agent):
    clerk = agent("Clerk", "approval")
    room.posted("@Clerk may I?")
    question = question_of(room)
    assert question["sender"]["id"] == clerk
    result = room.posted("yes", reply_to=question["id"])
    assert [run["assistant_id"] for run in result["runs"]] == [clerk]
    assert room.state(assistant_id=clerk)["values"]["verdict"] == "yes"
    assert {each["id"]: each["state"] for each in room.messages()}[question["id"]] == "ok"
    assert room.record()["status"] == "idle"


def test_the_metadata_of_a_reply_can_carry_the_answer(room, agent):
    clerk = agent("Clerk", "approval")
    room.posted("@Clerk may I?")
    room.posted("see the form", reply_to=question_of(room)["id"], metadata={"resume": {"ok": [1, 2.5]}})
    assert room.state(assistant_id=clerk)["values"]["verdict"] == {"ok": [1, 2.5]}


def test_another_message_to_the_agent_waits_behind_its_question(room, agent):
    clerk, judge = agent("Clerk", "approval"), agent("Judge")
    room.posted("@Clerk may I?")
    question = question_of(room)
    result = room.posted("@Clerk and @Judge, hello", id="m-2")
    assert [run["assistant_id"] for run in result["runs"]] == [judge]
    assert question_of(room)["id"] == question["id"]
    room.posted("yes", reply_to=question["id"])
    [late] = until(lambda: [run for run in room.runs("m-2") if run["assistant_id"] == clerk])
    room.ask("GET", room.path(f"/runs/{late['run_id']}/join"))
    assert [pair["message_id"] for pair in late["given"]][-1] == "m-2"
    assert room.state(assistant_id=clerk)["values"]["verdict"] == "yes"
    assert question_of(room)["id"] != question["id"]
    assert room.heard(clerk)[-1] == "@Clerk and @Judge, hello"


def test_a_waiting_message_that_is_deleted_makes_no_run(room, agent):
    clerk = agent("Clerk", "approval")
    room.posted("@Clerk may I?")
    question = question_of(room)
    room.post("@Clerk hello", id="m-2")
    room.ask("DELETE", room.path("/room/messages/m-2"))
    room.post("@Clerk goodbye", id="m-3")
    room.posted("yes", reply_to=question["id"])
    until(lambda: room.runs("m-3"))
    assert room.runs("m-2") == []
    until(lambda: room.record()["status"] == "interrupted")
    assert [text for text in room.heard(clerk) if "hello" in text] == []


def test_withdrawing_a_question_lets_messages_go(room, agent):
    clerk = agent("Clerk", "approval")
    room.posted("@Clerk may I?")
    question = question_of(room)
    assert room.post("@Clerk hello", id="m-2")["runs"] == []
    room.ask("POST", room.path(f"/room/messages/{question['id']}/withdraw"), json={})
    [run] = until(lambda: room.runs("m-2"))
    assert run["assistant_id"] == clerk
    assert question_of(room)["id"] != question["id"]
    assert room.heard(clerk)[-1] == "@Clerk hello"


def test_a_question_is_answered_once(room, agent):
    agent("Clerk", "approval")
    room.posted("@Clerk may I?")
    question = question_of(room)
    room.posted("yes", reply_to=question["id"])
    again = room.posted("and no", reply_to=question["id"])  # a reply like any other
    assert len(again["runs"]) == 1 and question_of(room)["id"] != question["id"]


# ---- streams


def test_a_stream_begins_with_the_message_and_ends_with_its_runs(room, http, agent):
    clerk, judge = agent("Clerk"), agent("Judge")
    answer = http.post(room.path("/room/messages/stream"), json={"content": "@Clerk @Judge hi"})
    assert answer.status_code == 200
    got = events(answer.text)
    kind, data, _ = got[0]
    assert (kind, data["message"]["content"]) == ("room/message", "@Clerk @Judge hi")
    runs = {run["run_id"]: run["assistant_id"] for run in data["message"]["runs"]}
    assert set(runs.values()) == {clerk, judge}
    assert {data["run_id"] for kind, data, _ in got if kind == "metadata"} == set(runs)
    answers = [data["message"] for kind, data, _ in got if kind == "room/message"][1:]
    assert {each["sender"]["id"] for each in answers} == {clerk, judge}
    assert any(kind == "messages" for kind, _, _ in got)
    assert sum(kind == "end" for kind, _, _ in got) == len(runs)
    assert room.record()["status"] == "idle"


def test_a_stream_without_runs_ends_at_once(room, http):
    got = events(http.post(room.path("/room/messages/stream"), json={"content": "hi", "id": "m-1"}).text)
    assert [kind for kind, _, _ in got] == ["room/message"]
    again = events(http.post(room.path("/room/messages/stream"), json={"content": "hi", "id": "m-1"}).text)
    assert again[0][1]["message"]["seq"] == got[0][1]["message"]["seq"] == 1


def test_the_runs_continue_when_the_reader_leaves(room, http, agent):
    clerk = agent("Clerk", "gated")
    with Gate() as gate:
        room.settings(agents=[{"assistant_id": clerk}], default_assistant_id=clerk)
        with http.stream("POST", room.path("/room/messages/stream"), json={"content": "@Clerk hi"}) as answer:
            next(answer.iter_lines())
        gate.open()
    until(lambda: room.record()["status"] != "busy")


def test_other_readers_of_the_thread_see_the_message(room, server):
    with httpx.Client(base_url=server.url, timeout=60) as reader:
        with reader.stream("GET", room.path("/stream"), params={"stream_mode": "room"}) as answer:
            lines = answer.iter_lines()
            posted = room.post("hello")["message"]
            frame = []
            while frame[-2:-1] != ["event: room/message"]:
                frame.append(next(lines))
            assert posted["id"] in frame[-1]


# ---- many at once


def test_messages_that_arrive_together_get_one_number_each(room, server, agent):
    clerk = agent("Clerk")
    room.settings(agents=[{"assistant_id": clerk}])

    def send(number):
        with httpx.Client(base_url=server.url, timeout=60) as client:
            body = {"content": f"@Clerk {number}" if number % 3 == 0 else str(number)}
            answer = client.post(room.path("/room/messages"), json=body)
            assert answer.status_code == 201, answer.text
            return answer.json()

    with ThreadPoolExecutor(8) as pool:
        posted = list(pool.map(send, range(24)))
    for result in posted:
        for run in result["runs"]:
            room.ask("GET", room.path(f"/runs/{run['run_id']}/join"))
    messages = room.messages()
    assert [each["seq"] for each in messages] == list(range(1, 24 + 8 + 1))
    assert {each["content"] for each in messages if each["sender"]["type"] == "person"} == {
        result["message"]["content"] for result in posted
    }
    rows = [row for result in posted for row in room.runs(result["message"]["id"])]
    given = [pair["message_id"] for row in rows for pair in row["given"]]
    assert len(given) == len(set(given)), "no message is given twice"
