"""Several supersteps written at once, as when a thread is copied from elsewhere."""

import operator
from typing import Annotated

from langgraph.graph import START, StateGraph
from typing_extensions import TypedDict


class State(TypedDict):
    value: str
    log: Annotated[list, operator.add]


def a(state: State):
    return {"log": ["a"]}


def b(state: State):
    return {"log": ["b"]}


def c(state: State):
    return {"log": [f"c: {state['value']}"]}


def make(checkpointer):
    builder = StateGraph(State)
    builder.add_node("a", a)
    builder.add_node("b", b)
    builder.add_node("c", c)
    builder.add_edge(START, "a")
    builder.add_edge(START, "b")
    builder.add_edge(["a", "b"], "c")
    return builder.compile(checkpointer=checkpointer)
