"""Branches of different length; values are combined in the order of node names, not of time."""

import asyncio
import operator
from typing import Annotated

from langgraph.graph import START, StateGraph
from typing_extensions import TypedDict


class State(TypedDict):
    log: Annotated[list, operator.add]


async def y(state: State):
    await asyncio.sleep(0.02)
    return {"log": ["y"]}


async def a(state: State):
    await asyncio.sleep(0.04)
    return {"log": ["a"]}


def z2(state: State):
    return {"log": [f"z2 saw {state['log'][-1]}"]}


def make(checkpointer):
    builder = StateGraph(State)
    builder.add_node("start", lambda state: {"log": ["start"]})
    builder.add_node("z", lambda state: {"log": ["z"]})
    builder.add_node("y", y)
    builder.add_node("a", a)
    builder.add_node("z2", z2)
    builder.add_node("end", lambda state: {"log": ["end"]})
    builder.add_edge(START, "start")
    builder.add_edge("start", "z")
    builder.add_edge("start", "y")
    builder.add_edge("start", "a")
    builder.add_edge("z", "z2")
    builder.add_edge("z2", "end")
    builder.add_edge("y", "end")
    builder.add_edge("a", "end")
    return builder.compile(checkpointer=checkpointer)
