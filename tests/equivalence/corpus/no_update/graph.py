"""Nodes that return nothing, and a channel that is set to null."""

import operator
from typing import Annotated, Any

from langgraph.graph import START, StateGraph
from typing_extensions import TypedDict


class State(TypedDict):
    value: Any
    log: Annotated[list, operator.add]


def silent(state: State):
    return None


def empty(state: State):
    return {}


def null(state: State):
    return {"value": None}


def last(state: State):
    return {"log": ["value" in state, state.get("value")]}


def make(checkpointer):
    builder = StateGraph(State)
    builder.add_node("silent", silent)
    builder.add_node("empty", empty)
    builder.add_node("null", null)
    builder.add_node("last", last)
    builder.add_edge(START, "silent")
    builder.add_edge("silent", "empty")
    builder.add_edge("empty", "null")
    builder.add_edge("null", "last")
    return builder.compile(checkpointer=checkpointer)
