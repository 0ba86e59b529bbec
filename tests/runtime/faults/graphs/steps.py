"""Graphs that record their steps in a folder, and wait for files in it.

`configurable.folder` gets a file `<node>.<n>`, with the process id, for the nth start of a node,
and a node waits for a file `<node>.go` if the test created a file `<node>.waits`.
"""

from __future__ import annotations

import asyncio
import operator
import os
import signal
from pathlib import Path
from typing import Annotated, TypedDict

from langchain_core.runnables import RunnableConfig
from langgraph.config import get_stream_writer
from langgraph.graph import END, START, StateGraph


class State(TypedDict):
    said: Annotated[list[str], operator.add]


def mark(config: RunnableConfig, name: str) -> int:
    """The number of earlier starts."""
    folder = Path(config["configurable"]["folder"])
    number = len(list(folder.glob(f"{name}.[0-9]*")))
    (folder / f"{name}.{number + 1}").write_text(str(os.getpid()))
    return number


async def gate(config: RunnableConfig, name: str) -> int:
    folder = Path(config["configurable"]["folder"])
    number = mark(config, name)
    while (folder / f"{name}.waits").exists() and not (folder / f"{name}.go").exists():
        await asyncio.sleep(0.01)
    return number


def node(name: str):
    async def work(state: State, config: RunnableConfig):
        await gate(config, name)
        return {"said": [name]}

    return work


def build() -> StateGraph:
    builder = StateGraph(State)
    names = ["first", "left", "right", "end"]
    for name in names:
        builder.add_node(name, node(name))
    builder.add_edge(START, "first")
    builder.add_edge("first", "left")
    builder.add_edge("first", "right")
    builder.add_edge(["left", "right"], "end")
    builder.add_edge("end", END)
    return builder


graph = build().compile()


async def make(config: RunnableConfig):
    """A factory: it runs before the first checkpoint."""
    if "folder" in config.get("configurable", {}):
        await gate(config, "make")
    return build().compile()


async def talk(state: State, config: RunnableConfig):
    writer = get_stream_writer()
    count = config["configurable"].get("count", 100)
    mark(config, "talk")
    for number in range(count):
        writer({"number": number, "text": "x" * config["configurable"].get("size", 10)})
        if number == count // 2:
            await gate(config, "middle")
    return {"said": ["talk"]}


async def eat(state: State, config: RunnableConfig):
    """Grows and stays large, as a leak does."""
    kept.append(bytearray(os.urandom(1 << 20) * 256))
    return {"said": ["ate"]}


async def stop(state: State, config: RunnableConfig):
    if mark(config, "stop") == 0:
        os.kill(os.getpid(), signal.SIGSTOP)
    return {"said": ["went on"]}


kept: list[bytearray] = []
chatty = StateGraph(State).add_node("talk", talk).add_edge(START, "talk").compile()
greedy = StateGraph(State).add_node("eat", eat).add_edge(START, "eat").compile()
stops = StateGraph(State).add_node("stop", stop).add_edge(START, "stop").compile()
