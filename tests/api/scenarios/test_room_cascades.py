"""Edits of chat messages, and the answers that are made again."""

import json
import sqlite3
from contextlib import closing

import httpx
import pytest
from gate import Gate
from plain import Thread, texts, until
from server import GRAPHS, Server

pytestmark = pytest.mark.beyond_peer("has no rooms")

# Its answer has the first message that it sees, and the last one.
RECALL = {
    "name": "recall",
    "state": {"messages": {"reducer": "messages"}},
    "nodes": {
        "reply": {
            "kind": "script",
            "replies": [{"content": "{{messages[0].content}} | {{messages[-1].content}}"}],
        }
    },
    "edges": [["__start__", "reply"], ["reply", "__end__"]],
}

# Calls two tools for each message of a person. `also` is read-only only if the configuration has it.
SEARCH = {
    "name": "search",
    "state": {"messages": {"reducer": "messages"}},
    "nodes": {
        "model": {
            "kind": "script",
            "replies": [
                {"when": {"@eq": ["{{messages[-1].type}}", "tool"]}, "content": "It is {{messages[-1].status}}."},
                {
                    "content": "",
                    "tool_calls": [
                        {"name": "look", "args": {"at": "{{messages[-1].content}}"}, "id": "c1"},
                        {"name": "also", "args": {}, "id": "c2"},
                    ],
                },
            ],
        },
        "act": {
            "kind": "tools",
            "sources": [
                {"http": [{"name": "look", "url": "{{config.gate}}/look", "query": ["at"], "read_only": True}]},
                {"http": [{"name": "also", "url": "{{config.gate}}/also", "read_only": "{{config.is_calm}}"}]},
            ],
        },
    },
    "edges": [
        ["__start__", "model"],
        {
            "from": "model",
            "fanout": {"over": "{{messages[-1].tool_calls}}", "as": "call", "to": "act", "arg": {"call": "{{call}}"}},
        },
        ["act", "model"],
    ],
}

BROKEN = {
    "name": "broken",
    "state": {"messages": {"reducer": "messages"}},
    "nodes": {"break": {"kind": "fail", "error": "boom", "type": "ValueError"}},
    "edges": [["__start__", "break"], ["break", "__end__"]],
}


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    graphs = {name: GRAPHS / f"{name}.json" for name in ("echo", "tools", "approval", "gated")}
    for graph in RECALL, SEARCH, BROKEN:
        path = tmp_path_factory.mktemp("graphs") / "graph.json"
        path.write_text(json.dumps(graph))
        graphs[graph["name"]] = path
    with Server(graphs=graphs) as running:
        yield running


@pytest.fixture
def http(server):
    with httpx.Client(base_url=server.url, timeout=60) as client:
        yield client


OPEN = "running", "waiting"


class Room(Thread):
    """A thread that is used as a room."""

    def post(self, content, **body) -> dict:
        return self.ask("POST", self.path("/room/messages"), 201, json={"content": content, **body})

    def posted(self, content, **body) -> tuple[str, str]:
        """Posts a message and waits for the answer of its first run; returns the ids of both."""
        result = self.post(content, **body)
        message = result["message"]["id"]
        return message, self.answered(message)

    def answered(self, message: str) -> str:
        [run, *_] = self.ask("GET", self.path(f"/room/messages/{message}/runs"))
        self.ask("GET", self.path(f"/runs/{run['run_id']}/join"))
        return run["answer"]

    def message(self, identity: str) -> dict:
        return self.ask("GET", self.path(f"/room/messages/{identity}"))

    def messages(self) -> list[dict]:
        return self.ask("GET", self.path("/room/messages"))

    def chat(self) -> list[str]:
        """What the chat shows: messages that are not stale."""
        return [each["content"] for each in self.messages() if each["state"] != "stale"]

    def runs(self, message: str) -> list[dict]:
        return self.ask("GET", self.path(f"/room/messages/{message}/runs"))

    def settings(self, **body) -> dict:
        return self.ask("PUT", self.path("/room"), json=body)

    def edit(self, message: str, content: str, status: int = 200, **body) -> dict:
        path = self.path(f"/room/messages/{message}")
        return self.ask("PATCH", path, status, json={"content": content, **body})

    def retry(self, message: str, status: int = 200, **body) -> dict:
        return self.ask("POST", self.path(f"/room/messages/{message}/retry"), status, json=body)

    def cascade(self, identity: str) -> dict:
        return self.ask("GET", self.path(f"/cascades/{identity}"))

    def act(self, cascade: dict, action: str, status: int = 200, **body) -> dict:
        path = self.path(f"/cascades/{cascade['cascade_id']}")
        return self.ask("POST", path, status, json={"action": action, **body})

    def settled(self, cascade: dict) -> dict:
        """Waits until the cascade does not run."""
        identity = cascade["cascade_id"]
        return until(lambda: (found := self.cascade(identity))["status"] != "running" and found)

    def edited(self, message: str, content: str, **body) -> dict:
        """Edits and waits; returns the cascade."""
        return self.settled(self.edit(message, content, **body)["cascade"])

    def heard(self, agent: str) -> list[str]:
        """The texts of the agent's line."""
        return texts(self.state(assistant_id=agent)["values"])


@pytest.fixture
def room(http):
    return Room(http)


@pytest.fixture
def agent(http):
    """Creates assistants and deletes them."""
    made = []

    def make(name, graph="recall", **body) -> str:
        made.append(http.post("/assistants", json={"graph_id": graph, "name": name, **body}).json()["assistant_id"])
        return made[-1]

    yield make
    for each in made:
        http.delete(f"/assistants/{each}")


class Seed:
    """The chat of the first seed: A answers M1 and M5, B answers M3."""

    def __init__(self, room: Room, agent):
        self.room = room
        self.a, self.b = agent("Ann"), agent("Bob")
        self.m1, self.m2 = room.posted("@Ann red")
        self.m3, self.m4 = room.posted("@Bob what?")
        self.m5, self.m6 = room.posted("and you?", reply_to=self.m2)


@pytest.fixture
def seed(room, agent):
    return Seed(room, agent)


def steps(cascade: dict, *members: str) -> list[tuple]:
    return [tuple(step[name] for name in members) for step in cascade["plan"]]


# ---- the seed's flow


def test_the_plan_has_the_runs_that_depend_on_the_message(seed, room):
    plan = room.edit(seed.m1, "@Ann blue", dry_run=True)
    assert steps(plan, "assistant_id", "trigger", "answer") == [
        (seed.a, seed.m1, seed.m2), (seed.b, seed.m3, seed.m4), (seed.a, seed.m5, seed.m6),
    ]  # fmt: skip
    assert steps(plan, "why", "approval", "blocked", "after") == [
        ("trigger", None, None, []), ("given", None, None, [0]), ("given", None, None, [1, 0]),
    ]  # fmt: skip
    assert (plan["free"], plan["possible"], plan["limit"]) == (3, 3, 5)
    assert room.message(seed.m1)["content"] == "@Ann red"
    assert room.ask("GET", room.path("/cascades")) == []


def test_an_edit_makes_the_answers_again_in_their_order(seed, room):
    cascade = room.edited(seed.m1, "@Ann blue")
    assert (cascade["status"], cascade["reason"]) == ("done", None)
    assert steps(cascade, "status") == [("done",)] * 3
    assert room.chat() == [
        "@Ann blue", "@Bob what?", "and you?",
        "@Ann blue | @Ann blue", "User: @Ann blue | @Bob what?", "@Ann blue | and you?",
    ]  # fmt: skip
    for old, step in zip((seed.m2, seed.m4, seed.m6), cascade["plan"], strict=True):
        before, after = room.message(old), room.message(step["new_answer"])
        assert (before["state"], before["replaced_by"]) == ("stale", after["id"])
        assert (after["state"], after["replaces"], after["run_id"]) == ("ok", old, step["new_run_id"])
        assert after["reply_to"] == step["trigger"]
    assert room.heard(seed.a) == [
        "@Ann blue", "@Ann blue | @Ann blue",
        "User: @Bob what?", "Bob: User: @Ann blue | @Bob what?", "and you?", "@Ann blue | and you?",
    ]  # fmt: skip
    assert room.heard(seed.b)[0] == "User: @Ann blue"
    assert room.record()["status"] == "idle"


def test_after_the_switch_the_conversation_continues_on_the_new_lines(seed, room):
    room.edited(seed.m1, "@Ann blue")
    _, answer = room.posted("@Ann more")
    assert room.message(answer)["content"] == "@Ann blue | @Ann more"
    assert "@Ann red" not in room.heard(seed.a)
    again = room.edited(seed.m1, "@Ann green")
    assert steps(again, "trigger") == steps({"plan": again["plan"]}, "trigger")
    assert again["status"] == "done" and len(again["plan"]) == 4
    assert room.heard(seed.a)[0] == "@Ann green"
    assert not any("blue" in text for text in room.heard(seed.a) + room.heard(seed.b))


def test_over_the_limit_a_person_approves(seed, room):
    cascade = room.edited(seed.m1, "@Ann blue", limit=1)
    assert (cascade["status"], cascade["reason"]) == ("waiting", "approval")
    assert steps(cascade, "status", "approval") == [("done", None), ("done", None), ("waiting", "limit")]
    assert room.message(seed.m2)["state"] == "ok"  # nothing is seen of the new answers yet
    assert room.heard(seed.a)[0] == "@Ann red"
    cascade = room.settled(room.act(cascade, "approve"))
    assert (cascade["status"], cascade["approved"]) == ("done", -1)
    assert room.heard(seed.a)[0] == "@Ann blue"
    assert len(room.heard(seed.a)) == 6


def test_a_part_can_be_approved(seed, room):
    cascade = room.edited(seed.m1, "@Ann blue", limit=0)
    assert steps(cascade, "status") == [("done",), ("waiting",), ("waiting",)]
    cascade = room.settled(room.act(cascade, "approve", up_to=cascade["plan"][1]["run_id"]))
    assert cascade["status"] == "done"
    assert steps(cascade, "status") == [("done",), ("done",), ("skipped",)]
    assert (room.message(seed.m6)["state"], room.message(seed.m6)["replaced_by"]) == ("stale", None)
    assert room.heard(seed.a) == ["@Ann blue", "@Ann blue | @Ann blue"]


def test_the_agent_is_given_the_messages_of_skipped_runs_again(seed, room):
    cascade = room.edited(seed.m1, "@Ann blue", limit=0)
    cascade = room.settled(room.act(cascade, "approve", up_to=cascade["plan"][0]["run_id"]))
    assert steps(cascade, "status") == [("done",), ("skipped",), ("skipped",)]
    room.posted("@Ann more")
    assert room.heard(seed.a)[:-1] == [
        "@Ann blue", "@Ann blue | @Ann blue", "User: @Bob what?", "User: and you?", "@Ann more",
    ]  # fmt: skip
    assert "User: @Ann red" in room.heard(seed.b)  # the line of Bob has not moved


@pytest.mark.parametrize(("action", "status"), [("decline", "declined"), ("cancel", "cancelled")])
def test_without_approval_the_heads_stay(seed, room, action, status):
    cascade = room.edited(seed.m1, "@Ann blue", limit=1)
    assert room.act(cascade, action)["status"] == status
    assert room.heard(seed.a)[0] == "@Ann red"
    assert [room.message(each)["state"] for each in (seed.m2, seed.m4, seed.m6)] == ["stale"] * 3
    assert room.message(seed.m1)["content"] == "@Ann blue"
    room.act(cascade, action, 409)
    assert room.edited(seed.m1, "@Ann green")["status"] == "done"
    assert room.heard(seed.a)[0] == "@Ann green"


def test_an_undo_restores_heads_and_answers(seed, room):
    before = {each["id"]: each for each in room.messages()}
    heard = room.heard(seed.a), room.heard(seed.b)
    cascade = room.edited(seed.m1, "@Ann blue")
    assert room.act(cascade, "undo")["status"] == "undone"
    assert (room.heard(seed.a), room.heard(seed.b)) == heard
    for each in seed.m2, seed.m4, seed.m6:
        now = room.message(each)
        for member in "content", "state", "replaced_by", "run_id", "checkpoint_id":
            assert now[member] == before[each][member]
    assert [room.message(step["new_answer"])["state"] for step in cascade["plan"]] == ["stale"] * 3
    room.act(cascade, "undo", 409)
    room.posted("@Ann go on")
    assert room.heard(seed.a)[1:-2] == heard[0][1:]  # the first message is the edited one now


def test_nothing_is_undone_once_the_conversation_went_on(seed, room):
    cascade = room.edited(seed.m1, "@Ann blue")
    room.posted("@Bob go on")
    assert "continued" in room.act(cascade, "undo", 409)["detail"]
    assert room.heard(seed.b)[0] == "User: @Ann blue"


def test_nothing_is_undone_once_the_old_checkpoints_are_pruned(seed, room):
    cascade = room.edited(seed.m1, "@Ann blue")
    heard = room.heard(seed.a)
    room.ask("POST", "/threads/prune", json={"thread_ids": [room.id], "strategy": "keep_latest"})
    assert "pruned" in room.act(cascade, "undo", 409)["detail"]
    assert room.cascade(cascade["cascade_id"])["status"] == "done"
    assert room.heard(seed.a) == heard
    assert room.message(seed.m2)["state"] == "stale"


# ---- what an edit is


def test_an_edit_without_a_cascade_makes_the_answers_stale(seed, room):
    result = room.edit(seed.m1, "@Ann blue", cascade="none", metadata={"mood": "good"})
    assert result["cascade"] is None
    assert (result["message"]["version"], result["message"]["content"]) == (2, "@Ann blue")
    assert result["message"]["metadata"] == {"mood": "good"}
    assert [room.message(each)["state"] for each in (seed.m2, seed.m4, seed.m6)] == ["stale"] * 3
    assert room.heard(seed.a)[0] == "@Ann red"
    assert [each["content"] for each in room.message(seed.m1)["versions"]] == ["@Ann red", "@Ann blue"]


def test_a_message_that_no_agent_was_given_has_no_cascade(room):
    message = room.post("hello")["message"]
    result = room.edit(message["id"], "hello there")
    assert result["cascade"] is None
    assert (result["message"]["version"], result["message"]["seq"]) == (2, 1)
    assert room.chat() == ["hello there"]


def test_an_agents_message_is_not_edited(seed, room):
    assert "retry" in room.edit(seed.m2, "no", 422)["detail"]
    room.retry(seed.m1, 422)
    assert room.message(seed.m2)["version"] == 1


def test_unknown_messages_and_cascades(seed, room, http):
    assert room.edit("nothing", "x", 404)["detail"] == "Message with ID nothing not found"
    room.retry("nothing", 404)
    room.ask("GET", room.path("/cascades/nothing"), 404)
    room.act({"cascade_id": "nothing"}, "approve", 404)
    empty = Room(http)
    empty.edit("nothing", "x", 404)
    empty.act({"cascade_id": "nothing"}, "approve", 404)


@pytest.mark.parametrize(
    "body", [{}, {"content": ""}, {"content": 1}, {"content": "x", "limit": -1}, {"content": "x", "cascade": "some"}]
)
def test_a_bad_edit_changes_nothing(seed, room, body):
    room.ask("PATCH", room.path(f"/room/messages/{seed.m1}"), 422, json=body)
    assert room.message(seed.m1)["version"] == 1


def test_a_second_edit_waits_for_the_end_of_the_first(seed, room):
    cascade = room.edited(seed.m1, "@Ann blue", limit=0)
    room.edit(seed.m3, "@Bob how?", 409)
    assert room.message(seed.m3)["version"] == 1
    assert room.edit(seed.m3, "@Bob how?", dry_run=True)["possible"] == 2
    room.act(cascade, "decline")
    assert room.edited(seed.m3, "@Bob how?")["status"] == "done"


# ---- what is made again


def test_an_equal_answer_spares_those_that_depend_on_it(room, agent):
    ann = agent("Ann", "echo")
    agent("Bob", "echo")
    first = room.post("look")["message"]["id"]
    _, answer = room.posted("@Ann same")
    room.settings(context={"messages": 1})
    room.posted("@Bob then")  # is given the answer, and not the first message
    cascade = room.edited(first, "look here")
    assert cascade["status"] == "done"
    [step] = cascade["plan"]
    assert (step["assistant_id"], step["equal"], step["new_answer"]) == (ann, True, answer)
    message = room.message(answer)
    assert (message["state"], message["replaced_by"], message["run_id"]) == ("ok", None, step["new_run_id"])
    assert room.heard(ann)[0] == "User: look here"
    assert room.chat().count("You said: @Ann same") == 1


def test_a_message_with_two_agents(room, agent):
    ann, bob = agent("Ann"), agent("Bob")
    message = room.post("@Ann and @Bob red")["message"]["id"]
    for run in room.runs(message):
        room.ask("GET", room.path(f"/runs/{run['run_id']}/join"))
    cascade = room.edited(message, "@Ann and @Bob blue", limit=0)
    assert cascade["status"] == "done"
    assert steps(cascade, "why", "after") == [("trigger", []), ("trigger", [])]
    assert room.heard(ann)[0] == room.heard(bob)[0] == "@Ann and @Bob blue"


def test_a_retry_makes_an_answer_and_those_behind_it_again(seed, room):
    plan = room.retry(seed.m4, dry_run=True)
    assert steps(plan, "trigger", "why") == [(seed.m3, "retry"), (seed.m5, "given")]
    cascade = room.settled(room.retry(seed.m4)["cascade"])
    assert (cascade["status"], cascade["message_id"]) == ("done", seed.m4)
    assert cascade["plan"][0]["equal"] is True  # the answer is the same
    assert room.message(seed.m4)["state"] == "ok"


def test_an_equal_answer_of_a_stale_message_is_fresh_again(seed, room):
    room.edit(seed.m1, "@Ann red", cascade="none")
    assert room.message(seed.m2)["state"] == "stale"
    cascade = room.settled(room.retry(seed.m2)["cascade"])
    assert (cascade["status"], cascade["plan"][0]["equal"]) == ("done", True)
    assert room.message(seed.m2)["state"] == "ok"
    room.act(cascade, "undo")
    assert room.message(seed.m2)["state"] == "stale"
    assert room.settled(room.retry(seed.m2)["cascade"])["status"] == "done"
    room.posted("@Ann more")
    assert room.heard(seed.a)[1] == "@Ann red | @Ann red"  # its own answer is not removed


@pytest.mark.parametrize("action", ["decline", "cancel"])
def test_a_retry_without_approval_changes_no_answer(room, agent, action):
    agent("Ann", "tools")
    _, answer = room.posted("@Ann where?")
    cascade = room.settled(room.retry(answer)["cascade"])
    assert (cascade["status"], cascade["reason"]) == ("waiting", "approval")
    room.act(cascade, action)
    assert room.message(answer)["state"] == "ok"


def test_a_retry_that_fails_changes_no_answer(seed, room, http):
    http.patch(f"/assistants/{seed.b}", json={"graph_id": "broken"})
    assert room.settled(room.retry(seed.m4)["cascade"])["status"] == "failed"
    assert [room.message(each)["state"] for each in (seed.m4, seed.m6)] == ["ok"] * 2


def test_tools_with_effects_need_an_approval(room, agent):
    ann = agent("Ann", "tools")
    message, answer = room.posted("@Ann where?")
    cascade = room.edited(message, "@Ann there?")
    assert (cascade["status"], cascade["reason"]) == ("waiting", "approval")
    assert steps(cascade, "approval", "tools") == [("effects", ["look"])]
    cascade = room.settled(room.act(cascade, "approve"))
    assert cascade["status"] == "done"
    assert room.heard(ann)[0] == "@Ann there?"


@pytest.mark.parametrize("is_calm", [True, False])
def test_read_only_tools_need_no_approval(room, agent, is_calm):
    with Gate() as gate:
        gate.open()
        ann = agent("Ann", "search", config={"configurable": {**gate.config["configurable"], "is_calm": is_calm}})
        message, _ = room.posted("@Ann where?")
        assert gate.arrived == 2
        plan = room.edit(message, "@Ann there?", dry_run=True)
        assert steps(plan, "approval", "tools") == [(None if is_calm else "effects", ["look", "also"])]
        cascade = room.edited(message, "@Ann there?")
        assert cascade["status"] == ("done" if is_calm else "waiting"), cascade
        assert gate.arrived == (4 if is_calm else 2)
        assert room.heard(ann)[0] == ("@Ann there?" if is_calm else "@Ann where?")


def test_a_run_that_fails_leaves_everything(seed, room, http):
    http.patch(f"/assistants/{seed.b}", json={"graph_id": "broken"})
    heard = room.heard(seed.a)
    cascade = room.edited(seed.m1, "@Ann blue")
    assert cascade["status"] == "failed" and cascade["reason"]
    assert room.heard(seed.a) == heard
    assert [room.message(each)["state"] for each in (seed.m2, seed.m4, seed.m6)] == ["stale"] * 3
    assert len(room.messages()) == 6


def test_a_deleted_agent_cannot_be_asked_again(seed, room, http):
    http.delete(f"/assistants/{seed.b}")
    plan = room.edit(seed.m1, "@Ann blue", dry_run=True)
    assert [step["blocked"] is None for step in plan["plan"]] == [True, False, True]
    assert plan["possible"] == 2
    cascade = room.edited(seed.m1, "@Ann blue")
    assert cascade["status"] == "done"
    assert steps(cascade, "status") == [("done",), ("skipped",), ("done",)]
    assert room.message(seed.m4)["state"] == "stale"
    assert not any("Bob:" in text for text in room.heard(seed.a))


def test_after_pruning_nothing_can_be_made_again(seed, room):
    room.ask("POST", "/threads/prune", json={"thread_ids": [room.id], "strategy": "keep_latest"})
    plan = room.edit(seed.m1, "@Ann blue", dry_run=True)
    assert plan["possible"] == 0
    assert all(step["blocked"] for step in plan["plan"])
    cascade = room.edited(seed.m1, "@Ann blue")
    assert (cascade["status"], room.message(seed.m2)["state"]) == ("done", "stale")


def test_pruning_keeps_the_heads_behind_a_cancelled_cascade(room, agent):
    ann = agent("Ann", "approval")
    message = room.post("@Ann shall we?")["message"]["id"]
    question = until(lambda: [each for each in room.messages() if each["state"] == "pending"])[0]
    room.posted("yes", reply_to=question["id"])
    heard = room.heard(ann)
    cascade = room.edited(message, "@Ann shall they?")
    assert room.act(cascade, "cancel")["status"] == "cancelled"
    until(lambda: room.record()["status"] != "busy")
    room.ask("POST", "/threads/prune", json={"thread_ids": [room.id], "strategy": "keep_latest"})
    assert room.heard(ann) == heard


# ---- questions


def test_a_repeated_run_asks_and_continues_with_the_reply(room, agent):
    ann = agent("Ann", "approval")
    message = room.post("@Ann shall we?")["message"]["id"]
    question = until(lambda: [each for each in room.messages() if each["state"] == "pending"])[0]
    room.posted("yes", reply_to=question["id"])
    heard = room.heard(ann)
    bob = agent("Bob")
    room.posted("@Bob what?")
    cascade = room.edited(message, "@Ann shall they?")
    assert (cascade["status"], cascade["reason"]) == ("waiting", "question")
    assert room.heard(ann) == heard
    again = room.message(cascade["plan"][0]["question"])
    assert (again["state"], again["sender"]["id"], again["reply_to"]) == ("pending", ann, message)
    assert again["interrupts"]
    reply = room.post("never", reply_to=again["id"])
    assert reply["runs"] == []
    cascade = room.settled(cascade)
    assert cascade["status"] == "done", cascade
    assert room.heard(ann) == ["@Ann shall they?", "Approved: never"]
    assert room.message(again["id"])["state"] == "ok"
    assert room.heard(bob)[-1].startswith("User: @Ann shall they? |")
    # It can be made again: the agent asks again.
    cascade = room.edited(message, "@Ann shall I?")
    assert (cascade["status"], cascade["reason"]) == ("waiting", "question")
    question = cascade["plan"][0]["question"]
    detail = room.ask("POST", room.path(f"/room/messages/{question}/withdraw"), 409, json={})["detail"]
    assert "belongs to an edit" in detail
    assert room.act(cascade, "cancel")["status"] == "cancelled"
    assert room.message(question)["state"] == "stale"
    assert room.heard(ann) == ["@Ann shall they?", "Approved: never"]


def test_the_reply_to_a_repeated_run_was_given_to_it(room, agent):
    agent("Ann", "approval")
    message = room.post("@Ann shall we?")["message"]["id"]
    question = until(lambda: [each for each in room.messages() if each["state"] == "pending"])[0]
    room.posted("yes", reply_to=question["id"])
    cascade = room.edited(message, "@Ann shall they?")
    again = cascade["plan"][0]["question"]
    reply = room.post("never", reply_to=again)["message"]["id"]
    assert room.settled(cascade)["status"] == "done"
    given = [[each["message_id"], each["version"]] for each in room.runs(message)[-1]["given"]]
    assert given == [[message, 2], [reply, 1]]
    plan = room.edit(reply, "now", dry_run=True)
    assert steps(plan, "trigger", "why", "cause") == [(message, "given", reply)]
    # The run is made again from its beginning: its input has no replies.
    cascade = room.edited(reply, "now")
    assert (cascade["status"], cascade["reason"]) == ("waiting", "question")
    asked = room.message(cascade["plan"][0]["question"])
    assert "@Ann shall they?" in json.dumps(asked["interrupts"])
    room.post("now", reply_to=asked["id"])
    assert room.settled(cascade)["status"] == "done"


def test_a_question_stays_open_while_its_line_stays(room, agent):
    agent("Bob")
    ann = agent("Ann", "approval")
    first, _ = room.posted("@Bob red")
    room.post("@Ann shall we?")
    question = until(lambda: [each for each in room.messages() if each["state"] == "pending"])[0]
    cascade = room.edited(first, "@Bob blue", limit=0)
    cascade = room.settled(room.act(cascade, "approve", up_to=cascade["plan"][0]["run_id"]))
    assert steps(cascade, "status") == [("done",), ("skipped",)]
    assert room.message(question["id"])["state"] == "pending"
    room.posted("yes", reply_to=question["id"])
    assert room.heard(ann)[-1] == "Approved: yes"
    assert room.act(cascade, "undo")["status"] == "undone"
    assert room.message(question["id"])["state"] == "ok"  # answered since


def test_the_value_of_a_reply_is_only_in_its_message(room, agent, http):
    agent("Ann", "approval")
    message = room.post("@Ann shall we?")["message"]["id"]
    question = until(lambda: [each for each in room.messages() if each["state"] == "pending"])[0]
    room.posted("yes", reply_to=question["id"])
    cascade = room.edited(message, "@Ann shall they?")
    reply = room.post("a secret", reply_to=cascade["plan"][0]["question"])["message"]["id"]
    cascade = room.settled(cascade)
    assert (cascade["status"], cascade["plan"][0]["reply"]) == ("done", reply)
    assert "secret" not in json.dumps(cascade)
    events = []
    with http.stream(
        "GET", room.path("/stream"), params={"stream_mode": "room"}, headers={"Last-Event-ID": "-"}
    ) as answer:
        for line in answer.iter_lines():
            if line.startswith('data: {"cascade":'):
                events.append(line)
                if '"status":"done","limit"' in line:
                    break
    assert any(reply in event for event in events)
    assert not any("secret" in event for event in events)


def plans(server: Server) -> str:
    """The stored cascades, as text."""
    with closing(sqlite3.connect(server.folder / "heddle.db")) as database:
        return "".join(body for (body,) in database.execute("SELECT body FROM room_cascades"))


def test_a_purged_reply_is_not_in_the_plan():
    graphs = {name: GRAPHS / f"{name}.json" for name in ("approval", "gated")}
    with Gate() as gate, Server(graphs=graphs, options=["--limits-runs", "1"]) as server:
        with httpx.Client(base_url=server.url, timeout=60) as client:
            room = Room(client)
            message, _ = room.posted("@approval shall we?")
            question = until(lambda: [each for each in room.messages() if each["state"] == "pending"])[0]
            room.posted("yes", reply_to=question["id"])
            cascade = room.edited(message, "@approval shall they?")
            other = Thread(client)
            other.ask("POST", other.path("/runs"), json=gate.body())
            until(lambda: gate.arrived)
            # The limit of runs keeps the cascade from resuming its run.
            reply = room.post("a secret", reply_to=cascade["plan"][0]["question"])["message"]["id"]
            assert plans(server).count("a secret") == 1
            assert room.act(cascade, "cancel")["status"] == "cancelled"
            until(lambda: room.record()["status"] == "idle")
            path = room.path(f"/room/messages/{reply}")
            assert room.ask("DELETE", path, params={"purge": "true"})["message"]["state"] == "deleted"
            assert "secret" not in plans(server)
            assert room.cascade(cascade["cascade_id"])["plan"][0]["reply"] == reply
            gate.open()


@pytest.fixture
def asked(room, agent):
    """A cascade whose run waits for a reply."""
    agent("Ann", "approval")
    room.post("@Ann shall we?")
    question = until(lambda: [each for each in room.messages() if each["state"] == "pending"])[0]
    _, answer = room.posted("yes", reply_to=question["id"])
    cascade = room.settled(room.retry(answer)["cascade"])
    assert (cascade["status"], cascade["reason"]) == ("waiting", "question")
    return answer, cascade


def test_a_cancelled_retry_closes_its_question(room, asked):
    answer, cascade = asked
    room.act(cascade, "cancel")
    states = [room.message(each)["state"] for each in (answer, cascade["plan"][0]["question"])]
    assert states == ["ok", "stale"]


@pytest.mark.parametrize("action", ["decline", "cancel"])
def test_a_message_behind_the_question_of_a_cascade_gets_its_run(room, asked, action):
    waiting = room.post("@Ann and me?")
    assert waiting["runs"] == []
    room.act(asked[1], action)
    until(lambda: room.runs(waiting["message"]["id"]), seconds=10)


# ---- runs in flight


def test_a_typo_is_fixed_while_its_run_is_running(room, agent):
    with Gate() as gate:
        agent("Ann", "gated", config=gate.config)
        message = room.post("@Ann hello")["message"]["id"]
        until(lambda: gate.arrived)
        assert "if_running" in room.edit(message, "@Ann hallo", 409)["detail"]
        assert room.message(message)["version"] == 1
        cascade = room.edit(message, "@Ann hallo", if_running="interrupt")["cascade"]
        assert cascade["status"] == "running"
        until(lambda: gate.arrived == 2)
        gate.open()
        assert room.settled(cascade)["status"] == "done"
    assert room.heard(cascade["plan"][0]["assistant_id"])[0] == "@Ann hallo"


def test_the_switch_waits_for_a_run_that_is_running_on_the_line(room, agent):
    with Gate() as gate:
        ann = agent("Ann", "gated", config=gate.config)
        gate.open()
        first, _ = room.posted("@Ann hello")
        gate.is_open.clear()
        second = room.post("@Ann and now?")["message"]["id"]
        until(lambda: gate.arrived == 2)
        cascade = room.edit(first, "@Ann hallo")["cascade"]
        until(lambda: gate.arrived == 3)
        assert room.cascade(cascade["cascade_id"])["status"] == "running"
        gate.open()
        assert room.settled(cascade)["status"] == "done"
    said = "one two three four five six seven eight nine ten"
    assert room.heard(ann) == ["@Ann hallo", said, "@Ann and now?", said]
    assert len(room.messages()) == 4  # equal answers keep their messages
    assert [room.message(each)["state"] for each in (first, second)] == ["ok", "ok"]


def test_new_messages_meanwhile_join_the_cascade(seed, room):
    cascade = room.edited(seed.m1, "@Ann blue", limit=1)
    late, answer = room.posted("@Ann late")
    assert room.message(answer)["content"].endswith("| @Ann late")
    cascade = room.settled(room.act(cascade, "approve"))
    assert cascade["status"] == "done"
    assert steps(cascade, "trigger", "status")[-1][0] in (late, seed.m5)
    assert room.heard(seed.a)[0] == "@Ann blue"


def test_who_approves_everything_approves_what_joins(room, agent):
    with Gate() as gate:
        ann = agent("Ann", "gated", config=gate.config)
        gate.open()
        first, _ = room.posted("@Ann one")
        room.posted("@Ann two")
        cascade = room.edited(first, "@Ann uno", limit=0)
        assert (cascade["status"], cascade["reason"]) == ("waiting", "approval")
        gate.is_open.clear()
        arrived = gate.arrived
        room.act(cascade, "approve")
        until(lambda: gate.arrived == arrived + 1)
        room.post("@Ann three")
        until(lambda: gate.arrived == arrived + 2)
        gate.open()
        cascade = room.settled(cascade)
    assert steps(cascade, "status", "approval") == [("done", None), ("done", "limit"), ("done", "limit")]
    assert room.heard(ann)[::2] == ["@Ann uno", "@Ann two", "@Ann three"]


def test_a_cancelled_cascade_stops_its_runs(room, agent):
    with Gate() as gate:
        agent("Ann", "gated", config=gate.config)
        gate.open()
        message, answer = room.posted("@Ann hello")
        gate.is_open.clear()
        cascade = room.edit(message, "@Ann hallo")["cascade"]
        until(lambda: gate.arrived == 2)
        assert room.act(cascade, "cancel")["status"] == "cancelled"
        until(lambda: room.record()["status"] == "idle")
    assert room.message(answer)["state"] == "stale"


def test_the_events_of_a_cascade_are_on_the_threads_log(seed, room, http):
    cascade = room.edited(seed.m1, "@Ann blue")
    with http.stream(
        "GET", room.path("/stream"), params={"stream_mode": "room"}, headers={"Last-Event-ID": "-"}
    ) as answer:
        seen = []
        for line in answer.iter_lines():
            if line.startswith("event: room/"):
                seen.append(line.removeprefix("event: "))
            elif (
                line.startswith("data: ")
                and seen[-1:] == ["room/cascade"]
                and json.loads(line.removeprefix("data: "))["cascade"]["status"] == "done"
            ):
                break
    assert seen.count("room/cascade") >= 2
    assert seen.count("room/run") >= 6
    assert cascade["status"] == "done"


@pytest.mark.timeout(60)
def test_messages_are_seen_while_a_cascade_runs(room, agent, http):
    with Gate() as gate:
        agent("Ann", "gated", config=gate.config)
        agent("Bob")
        gate.open()
        message, _ = room.posted("@Ann hello")
        room.settings(context={"messages": 1})
        room.post("well")  # Bob is given this one, and does not depend on the edit
        gate.is_open.clear()
        cascade = room.edit(message, "@Ann hallo")["cascade"]
        until(lambda: gate.arrived == 2)
        with http.stream("GET", room.path("/stream"), params={"stream_mode": "room"}) as stream:
            room.posted("@Bob hello")  # the end of each run of the thread continues the cascade
            lines = stream.iter_lines()
            for number in range(10):
                room.post(f"look at {number}")
                assert next(line for line in lines if f"look at {number}" in line)
        assert room.cascade(cascade["cascade_id"])["status"] == "running"
