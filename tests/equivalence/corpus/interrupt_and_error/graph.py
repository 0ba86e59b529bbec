"""In one step a node interrupts, one succeeds and one fails; resumed before and after the failure."""

import asyncio
import operator
from typing import Annotated

from langgraph.graph import START, StateGraph
from langgraph.types import interrupt
from typing_extensions import TypedDict


class State(TypedDict):
    log: Annotated[list, operator.add]


failures = 0


def ask(state: State):
    return {"log": [interrupt("well?")]}


def done(state: State):
    return {"log": ["done"]}


async def bad(state: State):
    global failures
    await asyncio.sleep(0.8)
    if failures < 2:
        failures += 1
        raise ValueError("not yet")


def end(state: State):
    return {"log": ["end"]}


def make(checkpointer):
    builder = StateGraph(State)
    builder.add_node("ask", ask)
    builder.add_node("done", done)
    builder.add_node("bad", bad)
    builder.add_node("end", end)
    builder.add_edge(START, "ask")
    builder.add_edge(START, "done")
    builder.add_edge(START, "bad")
    builder.add_edge(["ask", "done", "bad"], "end")
    return builder.compile(checkpointer=checkpointer)
