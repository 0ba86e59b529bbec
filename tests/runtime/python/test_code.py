"""Other features of Python projects: unusual values, blocking calls, failures to load, changes of
code."""

from __future__ import annotations

import json
import os

import pytest
from langgraph_sdk import get_client
from programs import wait_for

ODD = """
from __future__ import annotations
import operator
from dataclasses import dataclass
from datetime import datetime, timezone
from decimal import Decimal
from enum import Enum
from typing import Annotated, Any
from uuid import UUID
from langgraph.graph import START, StateGraph
from pydantic import BaseModel
from typing_extensions import TypedDict

class Colour(Enum):
    RED = "red"

class Point(BaseModel):
    x: int
    label: str = "p"

@dataclass
class Pair:
    a: int
    b: list[int]

VALUES = {
    "time": datetime(2024, 1, 2, 3, 4, 5, tzinfo=timezone.utc),
    "uuid": UUID(int=7),
    "set": {1},
    "bytes": b"abc",
    "tuple": (1, 2),
    "int": 5,
    "none": None,
    "text": "\\u00e9",
}

class State(TypedDict, total=False):
    n: int
    values: Any
    point: Point
    pair: Pair
    colour: Colour
    seen: Annotated[list[str], operator.add]

def make(state):
    return {"values": VALUES, "point": Point(x=1), "pair": Pair(1, [2]), "colour": Colour.RED, "seen": ["make"]}

def look(state):
    assert state["values"] == {**VALUES, "tuple": [1, 2]} or state["values"] == VALUES
    assert state["point"].x == 1 and state["pair"].b == [2] and state["colour"] is Colour.RED
    return {"seen": ["look"]}

builder = StateGraph(State).add_node(make).add_node(look).add_edge(START, "make").add_edge("make", "look")
graph = builder.compile()
"""

CALLS = """
import time
from pathlib import Path
from heddle.runtime import assistant
from langgraph.graph import START, StateGraph
from langgraph.config import get_config
from typing_extensions import TypedDict

class State(TypedDict, total=False):
    n: int
    secret_seen: bool
    told: dict

inner = StateGraph(State).add_node("one", lambda s: {"n": s["n"] + 1}).add_node("two", lambda s: {"n": s["n"] * 2})
inner = inner.add_edge(START, "one").add_edge("one", "two").compile()

async def sync_inside(state):
    # A mistake that people make; it has to work all the same.
    return {"n": inner.invoke({"n": state["n"]})["n"]}

sync_graph = StateGraph(State).add_node(sync_inside).add_edge(START, "sync_inside").compile()

async def block(state):
    # Until the test has seen that it is noticed.
    give_up = time.monotonic() + 60
    while not Path(__file__).with_name("go").exists() and time.monotonic() < give_up:
        time.sleep(0.05)
    print("a line of the graph")
    return {}

blocking = StateGraph(State).add_node(block).add_edge(START, "block").compile()

async def look(state):
    configurable = get_config()["configurable"]
    return {"secret_seen": configurable.get("my_api_key") == "sk-very-secret-value"}

secret = StateGraph(State).add_node(look).add_edge(START, "look").compile()

async def ask(state):
    return {"told": await assistant("sync").ainvoke({"n": 20})}

def ask_again(state):
    return {"told": {**state["told"], "again": assistant("sync").invoke({"n": 1})["n"]}}

caller = StateGraph(State).add_node(ask).add_node(ask_again).add_edge(START, "ask").add_edge("ask", "ask_again").compile()
"""


@pytest.fixture(scope="module")
def server(project_module):
    graphs = {
        "odd": "./odd.py:graph",
        "sync": "./calls.py:sync_graph",
        "blocking": "./calls.py:blocking",
        "secret": "./calls.py:secret",
        "caller": "./calls.py:caller",
        "broken": "./broken.py:graph",
    }
    files = {"odd.py": ODD, "calls.py": CALLS, "broken.py": "import json\nimport no_such_module\n"}
    return project_module(config={"dependencies": ["."], "graphs": graphs}, files=files)


@pytest.fixture
async def client(server):
    async with get_client(url=server.url, timeout=120) as client:
        yield client


async def test_values_of_all_kinds(client):
    """Values are unchanged in the next step, and are rendered alike in events and states."""
    thread = (await client.threads.create())["thread_id"]
    last = None
    async for event in client.runs.stream(thread, "odd", input={"n": 1}, stream_mode="values"):
        assert event.event != "error", event.data
        last = event.data if event.event == "values" else last
    assert last["seen"] == ["make", "look"]
    assert last["point"] == {"x": 1, "label": "p"} and last["pair"] == {"a": 1, "b": [2]} and last["colour"] == "red"
    assert last["values"]["time"] == "2024-01-02T03:04:05+00:00" and last["values"]["bytes"] == "YWJj"
    state = await client.threads.get_state(thread)
    assert state["values"] == last


async def test_sync_graph_in_async_node(client):
    thread = (await client.threads.create())["thread_id"]
    assert (await client.runs.wait(thread, "sync", input={"n": 3}))["n"] == 8


async def test_blocked_loop_is_reported(server, client):
    thread = (await client.threads.create())["thread_id"]
    run = await client.runs.create(thread, "blocking", input={"n": 1})
    wait_for(lambda: "the event loop is blocked" in server.log.read_text(), what="the watchdog")
    wait_for(lambda: "calls.py" in server.log.read_text(), what="the place in the code")
    (server.project / "go").touch()
    await client.runs.join(thread, run["run_id"])
    wait_for(lambda: "a line of the graph" in server.log.read_text(), what="the graph's output")


async def test_secrets_are_for_the_graph_only(server, client):
    config = {"configurable": {"my_api_key": "sk-very-secret-value"}}
    modes = ["values", "updates", "debug", "checkpoints", "tasks", "events"]
    thread = (await client.threads.create())["thread_id"]
    stream = client.runs.stream(thread, "secret", input={"n": 1}, config=config, stream_mode=modes)
    events = [event async for event in stream]
    values = [event.data for event in events if event.event == "values"]
    assert values[-1]["secret_seen"] is True
    assert "very-secret" not in json.dumps([event.data for event in events])
    assert b"very-secret" not in server.database()
    assert "very-secret" not in server.log.read_text()


async def test_other_assistants(client):
    thread = (await client.threads.create())["thread_id"]
    values = await client.runs.wait(thread, "caller", input={"n": 1})
    assert values["told"]["n"] == 42 and values["told"]["again"] == 4


async def test_failures_to_load(server, client):
    wait_for(lambda: "no_such_module" in server.log.read_text(), what="the failure in the log")
    assert "broken.py" in server.log.read_text()
    thread = (await client.threads.create())["thread_id"]
    events = [event async for event in client.runs.stream(thread, "broken", input={})]
    errors = [event.data for event in events if event.event == "error"]
    assert len(errors) == 1 and "no_such_module" in errors[0]["message"]


def test_code_changes(project):
    code = """
from langgraph.graph import START, StateGraph
from typing_extensions import TypedDict
from words import WORD
class State(TypedDict, total=False):
    said: str
graph = StateGraph(State).add_node("say", lambda state: {"said": WORD}).add_edge(START, "say").compile()
"""
    config = {"dependencies": ["."], "graphs": {"g": "./g.py:graph"}}
    server = project(config=config, files={"g.py": code, "words.py": "WORD = 'one'\n"}, options=["--runtime-reload"])
    assert server.wait("g", {"said": ""})["said"] == "one"
    # The same length and the same second: stale bytecode must not be used.
    moment = (server.project / "words.py").stat().st_mtime_ns // 10**9 * 10**9 + 999_999_999
    (server.project / "words.py").write_text("WORD = 'two'\n")
    os.utime(server.project / "words.py", ns=(moment, moment))
    wait_for(lambda: server.wait("g", {"said": ""})["said"] == "two", what="the new code")
    (server.project / "words.py").write_text("WORD = 'three\n")
    wait_for(lambda: "SyntaxError" in server.log.read_text(), what="the failure in the log")
    (server.project / "words.py").write_text("WORD = 'four'\n")

    def says_four():
        values = server.wait("g", {"said": ""})
        return values.get("said") == "four"

    wait_for(says_four, what="the repaired code")
