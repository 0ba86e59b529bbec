"""An ephemeral value exists only in the next step."""

import operator
from typing import Annotated

from langgraph.channels import EphemeralValue
from langgraph.graph import START, StateGraph
from typing_extensions import TypedDict


class State(TypedDict):
    hint: Annotated[str, EphemeralValue]
    log: Annotated[list, operator.add]


def a(state: State):
    return {"log": [state.get("hint")], "hint": "from a"}


def b(state: State):
    return {"log": [state.get("hint")]}


def c(state: State):
    return {"log": [state.get("hint")]}


def d(state: State):
    return {"hint": "at the end"}


def make(checkpointer):
    builder = StateGraph(State)
    builder.add_node("a", a)
    builder.add_node("b", b)
    builder.add_node("c", c)
    builder.add_node("d", d)
    builder.add_edge(START, "a")
    builder.add_edge("a", "b")
    builder.add_edge("b", "c")
    builder.add_edge("c", "d")
    return builder.compile(checkpointer=checkpointer)
