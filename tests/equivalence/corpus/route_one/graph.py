"""Conditional edges to one node or to the end; they see the node's own writes."""

import operator
from typing import Annotated

from langgraph.graph import END, START, StateGraph
from typing_extensions import TypedDict


class State(TypedDict):
    n: int
    log: Annotated[list, operator.add]


def look(state: State):
    return {"n": state["n"] + 1, "log": ["look"]}


def small(state: State):
    return {"log": ["small"]}


def large(state: State):
    return {"log": ["large"]}


def route(state: State):
    if state["n"] < 3:
        return "small"
    if state["n"] < 6:
        return "large"
    return END


def make(checkpointer):
    builder = StateGraph(State)
    builder.add_node("look", look)
    builder.add_node("small", small)
    builder.add_node("large", large)
    builder.add_edge(START, "look")
    builder.add_conditional_edges("look", route, ["small", "large", END])
    return builder.compile(checkpointer=checkpointer)
