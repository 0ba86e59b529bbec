"""Null input for a finished thread, and further turns on it."""

import operator
from typing import Annotated

from langgraph.graph import START, StateGraph
from typing_extensions import TypedDict


class State(TypedDict):
    turn: Annotated[int, operator.add]
    last: str


def count(state: State):
    return {"turn": 1, "last": f"turn {state['turn']}"}


def make(checkpointer):
    builder = StateGraph(State)
    builder.add_node("count", count)
    builder.add_edge(START, "count")
    return builder.compile(checkpointer=checkpointer)
