"""A task that writes more values than a frame has blobs: the rest is sent as text."""

from __future__ import annotations

WIDE = """
from typing import TypedDict

from langgraph.graph import START, StateGraph
from langgraph.types import Send

COUNT = 5000


class State(TypedDict, total=False):
    number: int


async def spread(state: State):
    return {"number": 1}


async def one(state: State):
    return {}


builder = StateGraph(State)
builder.add_node("spread", spread)
builder.add_node("one", one)
builder.add_edge(START, "spread")
builder.add_conditional_edges("spread", lambda state: [Send("one", {"number": n}) for n in range(COUNT)], ["one"])
graph = builder.compile()
"""


def test_five_thousand_sends(project):
    server = project(config={"dependencies": ["."], "graphs": {"wide": "./wide.py:graph"}}, files={"wide.py": WIDE})
    thread = server.thread()
    server.wait("wide", {}, thread, interrupt_before=["one"])
    assert server.state(thread)["next"] == ["one"] * 5000
    # The task's writes belong to the checkpoint before; continuing from there reads them again.
    before = server.ask("POST", f"/threads/{thread}/history", json={"limit": 2})[1]
    assert before["next"] == ["spread"]
    checkpoint = {
        "checkpoint_id": before["checkpoint"]["checkpoint_id"],
        "checkpoint_ns": before["checkpoint"]["checkpoint_ns"],
    }
    server.wait("wide", None, thread, checkpoint=checkpoint, interrupt_before=["one"])
    assert server.state(thread)["next"] == ["one"] * 5000
