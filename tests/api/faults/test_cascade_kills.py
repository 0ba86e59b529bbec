"""kill -9 at random points of cascades: the room is as before the edit, or as after it.

The default is a short series. HEDDLE_API_KILLS is the number of kills for each database,
HEDDLE_API_SEED selects other points: see tests/api/run.
"""

import json
import os
import random
import threading
import time
import uuid

import httpx
import pytest
from plain import Thread, texts, until
from server import Server

pytestmark = pytest.mark.beyond_peer("has no rooms")

KILLS = int(os.environ.get("HEDDLE_API_KILLS", "6"))
SEED = int(os.environ.get("HEDDLE_API_SEED", "1"))
LONGEST = 0.5  # seconds: about as long as a cascade takes

# Its answer has the first message that it sees; slowly, so that a kill finds it running.
RECALL = {
    "name": "recall",
    "state": {"messages": {"reducer": "messages"}},
    "nodes": {
        "reply": {
            "kind": "script",
            "replies": [{"content": "{{messages[0].content}} | {{messages[-1].content}}"}],
            "stream": {"by": "word", "delay_ms": 10},
        }
    },
    "edges": [["__start__", "reply"], ["reply", "__end__"]],
}


def stores() -> dict[str, str | None]:
    """The databases by name; None is the server's default SQLite file."""
    postgres = os.environ.get("HEDDLE_TEST_PG_URL")
    found = {"sqlite": None}
    if postgres:
        found["postgres"] = f"{postgres}{'&' if '?' in postgres else '?'}schema=cascades_{uuid.uuid4().hex[:8]}"
    return found


STORES = stores()


class Room(Thread):
    def posted(self, content: str, **body) -> str:
        result = self.ask("POST", self.path("/room/messages"), 201, json={"content": content, **body})
        for run in result["runs"]:
            self.ask("GET", self.path(f"/runs/{run['run_id']}/join"))
        return result["message"]["id"]

    def messages(self) -> list[dict]:
        return self.ask("GET", self.path("/room/messages"), params={"limit": 1000})

    def shown(self) -> dict[str, str]:
        """The answers that the chat shows, by the message that they reply to."""
        return {
            each["reply_to"]: each["content"]
            for each in self.messages()
            if each["sender"]["type"] == "agent" and each["state"] == "ok"
        }

    def cascades(self) -> list[dict]:
        return self.ask("GET", self.path("/cascades"), params={"limit": 1000})

    def heard(self, agent: str) -> list[str]:
        return texts(self.state(assistant_id=agent)["values"])


def edit(server, room: Room, message: str, text: str) -> None:
    path = f"{server.url}/threads/{room.id}/room/messages/{message}"
    try:
        httpx.patch(path, json={"content": text}, timeout=60)
    except httpx.TransportError:
        pass  # killed before the response


def kill_during(server, room: Room, message: str, text: str, delay: float) -> None:
    editing = threading.Thread(target=edit, args=(server, room, message, text))
    editing.start()
    time.sleep(delay)
    server.kill()
    editing.join()
    server.restart()


def check(room: Room, agents: tuple[str, str], asked: list[str], text: str) -> bool:
    """Everything that the room shows follows from one version of the first message."""
    until(lambda: not [each for each in room.cascades() if each["status"] == "running"], 120)
    until(lambda: room.record()["status"] == "idle", 120)
    first = next(each for each in room.messages() if each["id"] == asked[0])
    shown, heard = room.shown(), [room.heard(agent) for agent in agents]
    assert len(shown) == len(asked) and set(shown) == set(asked)
    assert {each["status"] for each in room.cascades()} <= {"done"}
    assert shown[asked[0]] == f"{first['content']} | {first['content']}"
    assert shown[asked[1]].startswith(f"User: {first['content']} | ")
    assert shown[asked[2]].startswith(f"{first['content']} | ")
    assert heard[0][:2] == [first["content"], shown[asked[0]]] and heard[0][-1] == shown[asked[2]]
    assert heard[1][0] == f"User: {first['content']}" and heard[1][-1] == shown[asked[1]]
    return first["content"] == text


@pytest.mark.parametrize("store", STORES.values(), ids=STORES)
def test_a_cascade_is_killed_at_random_points(store, tmp_path):
    recall = tmp_path / "recall.json"
    recall.write_text(json.dumps(RECALL))
    chance = random.Random(SEED)
    stored = 0
    with (
        Server(graphs={"recall": recall}, store=store) as server,
        httpx.Client(base_url=server.url, timeout=60) as http,
    ):
        agents = tuple(
            http.post("/assistants", json={"graph_id": "recall", "name": name}).json()["assistant_id"]
            for name in ("Ann", "Bob")
        )
        room = Room(http)
        asked = [room.posted("@Ann red"), room.posted("@Bob what?"), room.posted("@Ann and you?")]
        for number in range(KILLS):
            text = f"@Ann colour {number}"
            kill_during(server, room, asked[0], text, chance.random() * LONGEST)
            stored += check(room, agents, asked, text)
        assert stored > 0
