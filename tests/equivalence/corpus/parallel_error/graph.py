"""One of three parallel tasks fails; the writes of the others are kept, and only it runs again."""

import asyncio
import operator
from typing import Annotated

from langgraph.config import get_stream_writer
from langgraph.graph import START, StateGraph
from typing_extensions import TypedDict


class State(TypedDict):
    log: Annotated[list, operator.add]


failures = 0


def good(state: State):
    get_stream_writer()({"node": "good"})
    return {"log": ["good"]}


async def bad(state: State):
    global failures
    await asyncio.sleep(0.8)
    if failures < 1:
        failures += 1
        raise ValueError("not now")


def also_good(state: State):
    get_stream_writer()({"node": "also_good"})
    return {"log": ["also good"]}


def end(state: State):
    return {"log": ["end"]}


def make(checkpointer):
    builder = StateGraph(State)
    builder.add_node("good", good)
    builder.add_node("bad", bad)
    builder.add_node("also_good", also_good)
    builder.add_node("end", end)
    builder.add_edge(START, "good")
    builder.add_edge(START, "bad")
    builder.add_edge(START, "also_good")
    builder.add_edge(["good", "bad", "also_good"], "end")
    return builder.compile(checkpointer=checkpointer)
