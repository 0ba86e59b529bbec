"""A subgraph without memory: none of it is saved, and it starts over when it runs again."""

import asyncio
import operator
from typing import Annotated

from langgraph.graph import START, StateGraph
from typing_extensions import TypedDict


class State(TypedDict):
    log: Annotated[list, operator.add]


failures = 0


async def bad(state: State):
    global failures
    await asyncio.sleep(0.8)
    if failures < 1:
        failures += 1
        raise ValueError("once")


def make(checkpointer):
    child = StateGraph(State)
    child.add_node("one", lambda state: {"log": ["one"]})
    child.add_node("two", lambda state: {"log": ["two"]})
    child.add_edge(START, "one")
    child.add_edge("one", "two")

    builder = StateGraph(State)
    builder.add_node("child", child.compile(checkpointer=False))
    builder.add_node("bad", bad)
    builder.add_node("after", lambda state: {"log": ["after"]})
    builder.add_edge(START, "child")
    builder.add_edge(START, "bad")
    builder.add_edge(["child", "bad"], "after")
    return builder.compile(checkpointer=checkpointer)
