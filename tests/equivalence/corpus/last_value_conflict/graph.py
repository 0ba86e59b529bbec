"""Two nodes write one plain channel in the same step: an error that blocks the thread."""

from langgraph.graph import START, StateGraph
from typing_extensions import TypedDict


class State(TypedDict):
    value: str
    other: str


def a(state: State):
    return {"value": "from a"}


def b(state: State):
    return {"value": "from b", "other": "b"}


def make(checkpointer):
    builder = StateGraph(State)
    builder.add_node("a", a)
    builder.add_node("b", b)
    builder.add_edge(START, "a")
    builder.add_edge(START, "b")
    return builder.compile(checkpointer=checkpointer)
