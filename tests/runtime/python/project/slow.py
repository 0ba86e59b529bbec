"""A run that lasts until it is cancelled; its finished steps stay."""

from __future__ import annotations

import asyncio
import operator
from typing import Annotated, Any

from langgraph.config import get_stream_writer
from langgraph.graph import START, StateGraph
from typing_extensions import TypedDict


class State(TypedDict, total=False):
    seconds: float
    log: Annotated[list[str], operator.add]


async def wait(state: State) -> dict[str, Any]:
    get_stream_writer()("waiting")
    try:
        if "seconds" not in state:
            print("slow: waits until it is cancelled")
        await asyncio.sleep(state.get("seconds", 600))
    except asyncio.CancelledError:
        print("slow: the wait was cancelled")
        raise
    return {"log": ["waited"]}


builder = StateGraph(State)
builder.add_node("begin", lambda state: {"log": ["begun"]})
builder.add_node("wait", wait)
builder.add_edge(START, "begin")
builder.add_edge("begin", "wait")
graph = builder.compile()
