"""Graphs that are built for each run: by an async function, by a context manager."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from langchain_core.runnables import RunnableConfig
from langgraph.graph import START, StateGraph
from typing_extensions import TypedDict

if TYPE_CHECKING:
    from langgraph_sdk.runtime import ServerRuntime


class State(TypedDict, total=False):
    greeting: str
    open: bool


async def make(config: RunnableConfig) -> StateGraph[Any]:
    tone = config.get("configurable", {}).get("tone", "plain")
    builder = StateGraph(State)
    builder.add_node("greet", lambda state: {"greeting": f"a {tone} hello"})
    builder.add_edge(START, "greet")
    return builder


class Resource:
    is_open = False


@asynccontextmanager
async def session(config: RunnableConfig, runtime: ServerRuntime) -> AsyncIterator[Any]:
    resource = Resource()
    resource.is_open = runtime.execution_runtime is not None
    builder = StateGraph(State)
    builder.add_node("look", lambda state: {"open": resource.is_open})
    builder.add_edge(START, "look")
    try:
        yield builder.compile()
    finally:
        resource.is_open = False
