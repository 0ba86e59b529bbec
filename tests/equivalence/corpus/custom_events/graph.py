"""Custom events of plain values, parallel nodes, a subgraph, and of a node that runs again."""

import operator
from typing import Annotated

from langgraph.config import get_stream_writer
from langgraph.graph import START, StateGraph
from langgraph.types import interrupt
from typing_extensions import TypedDict


class State(TypedDict):
    n: int
    log: Annotated[list, operator.add]


class Output(TypedDict):
    log: Annotated[list, operator.add]


def start(state: State):
    write = get_stream_writer()
    write("text")
    write(1)
    write(None)
    write([1, {"two": state["n"]}])
    write({"n": state["n"]})
    return {"log": ["start"]}


def left(state: State):
    write = get_stream_writer()
    write({"node": "left", "k": 1})
    write({"node": "left", "k": 2})
    return {"log": ["left"]}


def inner(state: State):
    get_stream_writer()({"inner": state["n"]})
    return {"log": ["inner"]}


def ask(state: State):
    get_stream_writer()({"asking": True})
    return {"log": [interrupt("go on?")]}


def make(checkpointer):
    child = StateGraph(State, output_schema=Output)
    child.add_node("inner", inner)
    child.add_edge(START, "inner")

    builder = StateGraph(State)
    builder.add_node("start", start)
    builder.add_node("left", left)
    builder.add_node("right", child.compile())
    builder.add_node("ask", ask)
    builder.add_edge(START, "start")
    builder.add_edge("start", "left")
    builder.add_edge("start", "right")
    builder.add_edge(["left", "right"], "ask")
    return builder.compile(checkpointer=checkpointer)
