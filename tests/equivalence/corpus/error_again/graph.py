"""A node that always fails; new input starts over, an update bypasses it."""

import operator
from typing import Annotated

from langgraph.graph import START, StateGraph
from typing_extensions import TypedDict


class State(TypedDict):
    log: Annotated[list, operator.add]


def before(state: State):
    return {"log": ["before"]}


def bad(state: State):
    raise ValueError(f"no {state['log'][0]} here")


def after(state: State):
    return {"log": ["after"]}


def make(checkpointer):
    builder = StateGraph(State)
    builder.add_node("before", before)
    builder.add_node("bad", bad)
    builder.add_node("after", after)
    builder.add_edge(START, "before")
    builder.add_edge("before", "bad")
    builder.add_edge("bad", "after")
    return builder.compile(checkpointer=checkpointer)
