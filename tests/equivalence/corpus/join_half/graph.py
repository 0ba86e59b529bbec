"""A half-filled join survives breakpoints, updates and new input."""

import operator
from typing import Annotated

from langgraph.graph import END, START, StateGraph
from typing_extensions import TypedDict


class State(TypedDict):
    log: Annotated[list, operator.add]


def after_a(state: State):
    return END if "skip" in state["log"] else "b"


def make(checkpointer):
    builder = StateGraph(State)
    builder.add_node("a", lambda state: {"log": ["a"]})
    builder.add_node("b", lambda state: {"log": ["b"]})
    builder.add_node("c", lambda state: {"log": ["c"]})
    builder.add_node("meet", lambda state: {"log": ["meet"]})
    builder.add_edge(START, "a")
    builder.add_conditional_edges("a", after_a, ["b", END])
    builder.add_edge("b", "c")
    builder.add_edge(["a", "b", "c"], "meet")
    return builder.compile(checkpointer=checkpointer)
