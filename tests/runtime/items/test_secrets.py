"""Keys in a run's configuration reach only the graph's code: they are neither stored nor shown."""

from __future__ import annotations

import json

GRAPH = """
from operator import add
from typing import Annotated, Any
from typing_extensions import TypedDict
from langchain_core.runnables import RunnableConfig
from langgraph.config import get_store
from langgraph.graph import StateGraph
from langgraph.types import interrupt


class State(TypedDict):
    said: Annotated[list[Any], add]


async def work(state, config: RunnableConfig):
    key = config["configurable"]["service_api_key"]
    await get_store().aput(("keys",), "mine", {"key": key, "length": len(key)})
    return {"said": [len(key), f"Bearer {key}", {"key": key}]}


async def ask(state, config: RunnableConfig):
    return {"said": [interrupt(config["configurable"]["service_api_key"])]}


graph = (
    StateGraph(State).add_node(work).add_node(ask).add_edge("work", "ask").set_entry_point("work").compile()
)
"""

# Tests search for its end among ids, which are hexadecimal: it has no such digits.
END = "gnu-yak-wolf"
KEY = f'zebra-"quoted"-{END}'


def test_keys_are_not_stored(project):
    server = project(config={"dependencies": ["."], "graphs": {"keys": "./graph.py:graph"}}, files={"graph.py": GRAPH})
    thread = server.thread()
    values = server.wait("keys", {"said": []}, thread, {"service_api_key": KEY, "plain": "seen"})
    state = server.state(thread)
    history = server.ask("GET", f"/threads/{thread}/history")
    item = server.ask("GET", "/store/items", params={"namespace": "keys", "key": "mine"})

    assert state["values"]["said"][0] == len(KEY)  # the graph received it
    assert item["value"]["length"] == len(KEY)
    marker = item["value"]["key"]
    assert marker.startswith("heddle:secret:")
    assert state["values"]["said"][1:3] == [f"Bearer {marker}", {"key": marker}]
    assert state["metadata"]["plain"] == "seen"
    shown = json.dumps([values, state, history])
    assert END not in shown
    server.stop()
    assert END.encode() not in server.database()
