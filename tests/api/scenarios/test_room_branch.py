"""Copies and branches of rooms, and the removal of threads that are rooms."""

import os
import shutil
import sqlite3
import subprocess
import uuid
from contextlib import closing
from pathlib import Path

import httpx
import pytest
from plain import Thread, texts, until
from server import Server, binary
from table import refused

pytestmark = pytest.mark.beyond_peer("has no rooms")

SCHEMA = f"branch_{uuid.uuid4().hex[:8]}"


def stores() -> dict[str, str | None]:
    """A database of SQLite, and a schema of PostgreSQL if there is a server."""
    found = {"sqlite": None}
    postgres = os.environ.get("HEDDLE_TEST_PG_URL")
    if postgres:
        found["postgres"] = f"{postgres}{'&' if '?' in postgres else '?'}schema={SCHEMA}"
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
    """A room with the agents echo and loud; `of` names an existing thread."""

    def __init__(self, http: httpx.Client, of: str | None = None):
        if of:
            self.http, self.id = http, of
        else:
            super().__init__(http)

    def say(self, content: str) -> str:
        """Posts a message and waits for its runs; returns the id of the message."""
        result = self.ask("POST", self.path("/room/messages"), 201, json={"content": content})
        for run in result["runs"]:
            self.ask("GET", self.path(f"/runs/{run['run_id']}/join"))
        return result["message"]["id"]

    def messages(self) -> list[dict]:
        return self.ask("GET", self.path("/room/messages"))

    def chat(self) -> list[str]:
        return [message["content"] for message in self.messages()]

    def room(self) -> dict:
        return self.ask("GET", self.path("/room"))

    def branch(self, message: str, status: int = 201, **body) -> dict:
        return self.ask("POST", self.path("/room/branch"), status, json={"message_id": message, **body})

    def heard(self, agent: str) -> list[str]:
        """The texts of the agent's line."""
        return texts(self.state(assistant_id=agent)["values"])

    def checkpoints(self, agent: str) -> list[str]:
        found = self.history(assistant_id=agent)
        return [state["checkpoint"]["checkpoint_id"] for state in found]


@pytest.fixture
def room(http):
    """A conversation with two agents: m1, answer, m2, answer, m3 without an agent."""
    made = Room(http)
    made.ids = [made.say("@echo one"), made.say("@approval two"), made.say("three"), made.say("@echo four")]
    return made


def find(room: Room, content: str) -> dict:
    return next(message for message in room.messages() if message["content"] == content)


# ---- branches


def test_a_branch_has_the_chat_up_to_its_message(room, http):
    made = room.branch(room.ids[2])
    other = Room(http, made["thread_id"])
    before = room.messages()
    cut = next(i for i, message in enumerate(before) if message["id"] == room.ids[2])
    assert made["metadata"]["branched_from"] == {"thread_id": room.id, "message_id": room.ids[2]}
    kept = [(message["id"], message["seq"], message["content"], message["sender"]) for message in before[: cut + 1]]
    shown = [(message["id"], message["seq"], message["content"], message["sender"]) for message in other.messages()]
    assert shown == kept
    assert other.room()["last_seq"] == kept[-1][1]
    assert other.room()["unread"] == 0
    assert room.messages() == before


def test_each_line_of_a_branch_ends_at_its_head_then(room, http):
    made = Room(http, room.branch(room.ids[2])["thread_id"])
    assert made.heard("echo") == ["@echo one", "You said: @echo one"]
    assert room.heard("echo")[-2:] == ["@echo four", "You said: @echo four"]
    assert set(made.checkpoints("echo")) < set(room.checkpoints("echo"))
    assert made.checkpoints("approval") == room.checkpoints("approval")


def test_a_line_that_began_later_is_not_in_the_branch(room, http):
    answer = room.messages()[1]
    made = Room(http, room.branch(answer["id"])["thread_id"])
    assert made.chat() == ["@echo one", "You said: @echo one"]
    assert made.checkpoints("approval") == []
    assert [agent["name"] for agent in made.room()["agents"]] == [agent["name"] for agent in room.room()["agents"]]
    assert made.record()["status"] == "idle"


def test_a_branch_before_the_first_answer_has_no_states(room, http):
    made = Room(http, room.branch(room.ids[0])["thread_id"])
    assert made.chat() == ["@echo one"]
    assert made.checkpoints("echo") == []
    made.say("@echo again")
    assert made.heard("echo")[-1] == "You said: @echo again"


def test_an_open_question_waits_in_the_branch_too(room, http):
    question = next(message for message in room.messages() if message["state"] == "pending")
    made = Room(http, room.branch(question["id"])["thread_id"])
    record = made.record()
    assert record["status"] == "interrupted"
    assert len(record["interrupts"]) == 1
    assert room.record()["status"] == "interrupted"


def test_the_chat_goes_on_in_the_branch_alone(room, http):
    made = Room(http, room.branch(room.ids[2])["thread_id"])
    before = room.chat()
    made.say("@echo five")
    heard = made.heard("echo")
    assert heard[:2] == ["@echo one", "You said: @echo one"]
    assert heard[-1] == "You said: @echo five"
    assert any("three" in text for text in heard)
    assert not any("four" in text for text in heard)
    assert room.chat() == before


def test_the_branch_takes_the_given_id(room):
    wanted = str(uuid.uuid4())
    assert room.branch(room.ids[0], thread_id=wanted)["thread_id"] == wanted
    again = {"message_id": room.ids[0], "thread_id": wanted}
    refused(room.http, "POST", room.path("/room/branch"), 409, "Thread already exists", json=again)
    assert Room(room.http, wanted).chat() == ["@echo one"]


def test_a_message_that_is_not_there_has_no_branch(room, http):
    path = room.path("/room/branch")
    refused(http, "POST", path, 404, "Message with ID none not found", json={"message_id": "none"})
    refused(http, "POST", path, 422, "message_id", json={})
    refused(http, "POST", path, 422, "thread_id", json={"message_id": room.ids[0], "thread_id": "x"})
    nowhere = f"/threads/{uuid.uuid4()}/room/branch"
    refused(http, "POST", nowhere, 404, "not found", json={"message_id": room.ids[0]})


def test_a_branch_has_no_deleted_messages(room, http):
    room.ask("DELETE", room.path(f"/room/messages/{room.ids[2]}"))
    made = Room(http, room.branch(room.ids[3])["thread_id"])
    assert room.ids[2] not in [message["id"] for message in made.messages()]
    assert "three" not in str(made.messages())


def test_a_branch_has_what_followed_from_an_edit(http):
    room = Room(http)
    first, second = room.say("@echo one"), room.say("two")
    room.say("@echo three")
    room.ask("PATCH", room.path(f"/room/messages/{first}"), json={"content": "@echo uno", "limit": 10})
    until(lambda: room.ask("GET", room.path("/cascades"))[0]["status"] == "done")
    made = Room(http, room.branch(second)["thread_id"])
    assert sorted(made.chat()) == ["@echo uno", "You said: @echo uno", "two"]
    assert made.heard("echo") == ["@echo uno", "You said: @echo uno"]
    made.say("@echo four")
    assert "one" not in str(made.heard("echo"))
    assert made.heard("echo")[-1] == "You said: @echo four"


# ---- copies


def test_a_copy_has_the_room(room, http):
    made = Room(http, room.ask("POST", room.path("/copy"))["thread_id"])

    def shown(of: Room) -> list[tuple]:
        return [(message["id"], message["seq"], message["content"], message["state"]) for message in of.messages()]

    assert shown(made) == shown(room)
    assert made.room()["agents"] == room.room()["agents"]
    assert made.room()["unread"] == 0
    made.say("@echo five")
    assert made.heard("echo")[-1] == "You said: @echo five"
    assert len(made.messages()) == len(room.messages()) + 2


# ---- what removes threads and checkpoints


def test_pruned_checkpoints_leave_the_chat(room, http):
    before = room.chat()
    http.post("/threads/prune", json={"thread_ids": [room.id], "strategy": "keep_latest"}).raise_for_status()
    assert len(room.checkpoints("echo")) == 1
    assert room.chat() == before
    made = Room(http, room.branch(room.ids[2])["thread_id"])
    assert made.chat() == before[: len(made.chat())]
    # The checkpoint of then is gone: the agent begins anew and is given the chat again.
    assert made.checkpoints("echo") == []
    made.say("@echo five")
    assert any("one" in text for text in made.heard("echo")[:-1])


def test_a_removed_agent_begins_anew(room, http):
    agents = {agent["name"]: agent["assistant_id"] for agent in room.room()["agents"]}
    question = next(message for message in room.messages() if message["state"] == "pending")
    before = room.chat()
    for name in ("echo", "approval"):
        room.ask("DELETE", room.path(f"/agents/{agents[name]}"), 204)
    assert room.chat() == before
    assert room.ask("GET", room.path(f"/room/messages/{question['id']}"))["state"] == "stopped"
    room.say("@echo five")
    heard = room.heard("echo")
    assert "@echo one" in heard[0]
    assert heard[-1] == "You said: @echo five"


def test_a_deleted_room_leaves_nothing(room, http):
    room.ask("DELETE", room.path(""), 204)
    refused(http, "GET", room.path("/room/messages"), 404)
    again = Room(http, room.ask("POST", "/threads", json={"thread_id": room.id})["thread_id"])
    assert again.messages() == []
    assert again.room()["last_seq"] == 0


# ---- export and import


def tool(server: Server, *arguments: str) -> None:
    command = [str(binary()), *arguments, "--store", server.store]
    done = subprocess.run(
        command, env=server.environment(), cwd=server.folder, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_an_exported_room_comes_back(room, server):
    def shown() -> tuple:
        messages = room.messages()
        runs = [room.ask("GET", room.path(f"/room/messages/{message['id']}/runs")) for message in messages]
        return messages, runs, room.room()

    before = shown()
    file = str(server.folder / f"{room.id}.jsonl")
    tool(server, "export", room.id, "--output", file)
    room.ask("DELETE", room.path(""), 204)
    tool(server, "import", file)
    assert shown() == before
    room.say("@echo five")
    assert room.heard("echo")[-1] == "You said: @echo five"
    tool(server, "doctor")


def test_the_list_of_threads_says_which_are_rooms(room, server, http):
    plain = Thread(http)
    command = [str(binary()), "threads", server.store]
    done = subprocess.run(command, env=server.environment(), capture_output=True, text=True, check=True)
    lines = {line.split()[0]: line.split()[-1] for line in done.stdout.splitlines()}
    assert lines[room.id] == "room"
    assert lines[plain.id] != "room"


# ---- search


def test_threads_are_found_by_what_was_said_in_them(room, http):
    word = f"w{uuid.uuid4().hex}"
    message = room.say(f"{word} without an agent")

    def found() -> list[str]:
        answer = http.post("/threads/search", json={"text": word})
        return [thread["thread_id"] for thread in answer.json()]

    assert found() == [room.id]
    answer = http.post("/threads/search", json={"text": word, "select": ["label"]})
    assert answer.json()[0]["label"] == "@echo one"
    room.ask("DELETE", room.path(f"/room/messages/{message}"))
    assert found() == []


def test_what_agents_did_is_found_too(room, http):
    answer = http.post("/threads/search", json={"text": "said echo four", "ids": [room.id]})
    assert [thread["thread_id"] for thread in answer.json()] == [room.id]


# ---- views


def read_rows(server: Server, query: str) -> list[tuple]:
    if not server.store.startswith("postgres"):
        with closing(sqlite3.connect(server.folder / "heddle.db")) as database:
            return database.execute(query).fetchall()
    psql = shutil.which("psql") or sorted(Path("/usr/lib/postgresql").glob("*/bin/psql"))[-1]
    text = f"SET search_path TO {SCHEMA}; {query}"
    command = [psql, os.environ["HEDDLE_TEST_PG_URL"], "-v", "ON_ERROR_STOP=1", "-AtqF", "\t", "-c", text]
    lines = subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines()
    return [tuple(cell or None for cell in line.split("\t")) for line in lines]


def test_reports_can_read_the_chat(room, server):
    """With SQL, in the columns of an application that keeps chat messages itself."""
    where = f"WHERE thread_id = '{room.id}'"
    shown = read_rows(server, f"SELECT id, sender_id, agent_id, content FROM chat_messages {where} ORDER BY created_at")
    messages = room.messages()
    assert [row[0] for row in shown] == [message["id"] for message in messages]
    assert [row[3] for row in shown if row[1]] == ["@echo one", "@approval two", "three", "@echo four"]
    assert all((row[1] is None) != (row[2] is None) for row in shown)
    runs = read_rows(
        server, f"SELECT trigger_message_id, message_id, runtime, status FROM message_runs {where} ORDER BY created_at"
    )
    assert [row[0] for row in runs] == [room.ids[0], room.ids[1], room.ids[3]]
    assert {row[2] for row in runs} == {"native"}
    assert runs[0][1:] == (messages[1]["id"], "native", "completed")
