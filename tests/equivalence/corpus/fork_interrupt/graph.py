"""Branches of a thread with a pending or a resumed interrupt."""

import operator
from typing import Annotated

from langgraph.graph import START, StateGraph
from langgraph.types import interrupt
from typing_extensions import TypedDict


class State(TypedDict):
    value: str
    log: Annotated[list, operator.add]


def before(state: State):
    return {"log": [f"before {state['value']}"]}


def ask(state: State):
    return {"log": [interrupt(f"{state['value']}?")]}


def after(state: State):
    return {"log": ["after"]}


def make(checkpointer):
    builder = StateGraph(State)
    builder.add_node("before", before)
    builder.add_node("ask", ask)
    builder.add_node("after", after)
    builder.add_edge(START, "before")
    builder.add_edge("before", "ask")
    builder.add_edge("ask", "after")
    return builder.compile(checkpointer=checkpointer)
