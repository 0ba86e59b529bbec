"""The saved checkpoints in each mode, after success and after a failed node."""

import asyncio
import operator
from typing import Annotated

from langgraph.graph import START, StateGraph
from typing_extensions import TypedDict


class State(TypedDict):
    fail: bool
    log: Annotated[list, operator.add]


async def bad(state: State):
    await asyncio.sleep(0.8)
    raise ValueError("failed")


def after_a(state: State):
    return "bad" if state["fail"] else "c"


def make(checkpointer):
    builder = StateGraph(State)
    builder.add_node("a", lambda state: {"log": ["a"]})
    builder.add_node("b", lambda state: {"log": ["b"]})
    builder.add_node("c", lambda state: {"log": ["c"]})
    builder.add_node("bad", bad)
    builder.add_edge(START, "a")
    builder.add_edge("a", "b")
    builder.add_conditional_edges("a", after_a, ["bad", "c"])
    return builder.compile(checkpointer=checkpointer)
