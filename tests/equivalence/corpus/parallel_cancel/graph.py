"""A task fails while another is still running: that one is stopped and runs again later."""

import asyncio
import operator
from typing import Annotated

from langgraph.config import get_stream_writer
from langgraph.graph import START, StateGraph
from typing_extensions import TypedDict


class State(TypedDict):
    log: Annotated[list, operator.add]


failures = 0


async def bad(state: State):
    global failures
    await asyncio.sleep(0.02)
    if failures < 1:
        failures += 1
        raise RuntimeError("broken")


async def slow(state: State):
    get_stream_writer()({"node": "slow"})
    await asyncio.sleep(1.0)
    return {"log": ["slow"]}


def make(checkpointer):
    builder = StateGraph(State)
    builder.add_node("bad", bad)
    builder.add_node("slow", slow)
    builder.add_edge(START, "slow")
    builder.add_edge(START, "bad")
    return builder.compile(checkpointer=checkpointer)
