"""Rooms with custom authentication: whose memory and tokens the agents have."""

import json

import pytest

AUTH = """
import json
from pathlib import Path

from langgraph_sdk import Auth

auth = Auth()


@auth.authenticate
async def authenticate(authorization: str | None) -> dict:
    users = json.loads((Path(__file__).parent / "users.json").read_text())
    if not authorization:
        raise Auth.exceptions.HTTPException(status_code=401)
    return users[authorization.removeprefix("Bearer ")]
"""

GRAPH = """
import json

from langgraph.config import get_config, get_store
from langgraph.graph import MessagesState, StateGraph


async def work(state):
    store = get_store()
    before = sorted(item.key for item in await store.asearch(("notes",), limit=100))
    said = state["messages"][-1].content
    await store.aput(("notes", "deep"), said.split()[-1], {"text": said})
    spaces = [list(name) for name in await store.alist_namespaces()]
    user = get_config()["configurable"]["langgraph_auth_user"]
    known = {"keys": before, "spaces": spaces, "user": user["identity"], "token": user.get("api_key") == "hush-ada"}
    return {"messages": [("ai", json.dumps(known))]}


graph = StateGraph(MessagesState).add_node(work).set_entry_point("work").compile()
"""


@pytest.fixture
def people(guarded):
    server = guarded("python", files={"auth.py": AUTH, "graph.py": GRAPH}, graphs={"notes": "./graph.py:graph"})
    return server.as_user("t-ada"), server.as_user("t-bob")


def asked(person, thread, text) -> dict:
    result = person("POST", f"/threads/{thread}/room/messages", 201, json={"content": text, "mentions": ["notes"]})
    run = result["runs"][0]["run_id"]
    person("GET", f"/threads/{thread}/runs/{run}/join")
    [answer] = [each for each in person("GET", f"/threads/{thread}/room/messages") if each["run_id"] == run]
    return json.loads(answer["content"])


def share(owner, thread):
    owner("POST", f"/threads/{thread}/participants", json={"issuer": "custom", "subject": "bob", "role": "editor"})


def test_a_shared_room_has_its_own_memory_and_no_tokens(people):
    ada, bob = people
    thread = ada.thread()
    space = [["notes", "deep"]]
    assert asked(ada, thread, "alone") == {"keys": [], "spaces": space, "user": "ada", "token": True}
    share(ada, thread)
    assert asked(ada, thread, "together") == {"keys": [], "spaces": space, "user": "ada", "token": False}
    assert asked(bob, thread, "too") == {"keys": ["together"], "spaces": space, "user": "bob", "token": False}
    assert asked(ada, ada.thread(), "again")["keys"] == ["alone"]
    assert asked(bob, bob.thread(), "mine")["keys"] == []
    kept = ada("POST", "/store/items/search", json={"namespace_prefix": ["heddle:room", thread], "limit": 10})["items"]
    assert sorted(each["key"] for each in kept) == ["together", "too"]
    ada("DELETE", f"/threads/{thread}", 204)
    kept = ada("POST", "/store/items/search", json={"limit": 10})["items"]
    assert sorted(each["key"] for each in kept) == ["again", "alone"]


def test_the_config_of_a_plain_run_stays_with_its_run(people):
    ada, bob = people
    thread = ada.thread()
    share(ada, thread)
    ada("PUT", f"/threads/{thread}/room", json={})
    body = {"assistant_id": "echo", "input": {}, "config": {"configurable": {"taste": "salty"}}}
    bob("POST", f"/threads/{thread}/runs/wait", json=body)
    assert "salty" not in json.dumps(ada("GET", f"/threads/{thread}")["config"])
    alone = ada.thread()
    ada("POST", f"/threads/{alone}/runs/wait", json=body)
    assert "salty" in json.dumps(ada("GET", f"/threads/{alone}")["config"])
