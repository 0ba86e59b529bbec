"""A node that exceeds its timeout, beside a quick one and one that stays within its timeout."""

import asyncio
import operator
from typing import Annotated

from langgraph.config import get_stream_writer
from langgraph.graph import START, StateGraph
from typing_extensions import TypedDict


class State(TypedDict):
    log: Annotated[list, operator.add]


def quick(state: State):
    return {"log": ["quick"]}


async def in_time(state: State):
    await asyncio.sleep(0.005)
    return {"log": ["in time"]}


async def slow(state: State):
    get_stream_writer()({"node": "slow"})
    await asyncio.sleep(5)
    return {"log": ["slow"]}


def make(checkpointer):
    builder = StateGraph(State)
    builder.add_node("quick", quick)
    builder.add_node("in_time", in_time, timeout=5)
    builder.add_node("slow", slow, timeout=0.8)
    builder.add_edge(START, "quick")
    builder.add_edge(START, "in_time")
    builder.add_edge(START, "slow")
    return builder.compile(checkpointer=checkpointer)
