"""State updates: as every kind of node, on new, running and finished threads."""

import operator
from typing import Annotated

from langgraph.graph import END, START, StateGraph
from typing_extensions import TypedDict


class State(TypedDict):
    n: int
    log: Annotated[list, operator.add]


def a(state: State):
    return {"log": ["a"], "n": 1}


def b(state: State):
    return {"log": ["b"]}


def c(state: State):
    return {"log": ["c"]}


def after_a(state: State):
    return ["b", "c"] if state["n"] > 5 else "b"


def make(checkpointer):
    builder = StateGraph(State)
    builder.add_node("a", a)
    builder.add_node("b", b)
    builder.add_node("c", c)
    builder.add_edge(START, "a")
    builder.add_conditional_edges("a", after_a, ["b", "c"])
    builder.add_edge("b", END)
    return builder.compile(checkpointer=checkpointer)
