"""A channel that accepts any of the values that parallel tasks write."""

import operator
from typing import Annotated

from langgraph.channels import AnyValue
from langgraph.graph import START, StateGraph
from typing_extensions import TypedDict


class State(TypedDict):
    value: Annotated[str, AnyValue]
    log: Annotated[list, operator.add]


def b(state: State):
    return {"value": "from b", "log": [state["value"]]}


def a(state: State):
    return {"value": "from a", "log": [state["value"]]}


def end(state: State):
    return {"log": [state.get("value")]}


def make(checkpointer):
    builder = StateGraph(State)
    builder.add_node("b", b)
    builder.add_node("a", a)
    builder.add_node("end", end)
    builder.add_edge(START, "a")
    builder.add_edge(START, "b")
    builder.add_edge("a", "end")
    builder.add_edge("b", "end")
    return builder.compile(checkpointer=checkpointer)
