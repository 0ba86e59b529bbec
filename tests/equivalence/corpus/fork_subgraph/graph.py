"""Replays and branches around and inside a subgraph that interrupts."""

import operator
from typing import Annotated

from langgraph.graph import START, StateGraph
from langgraph.types import interrupt
from typing_extensions import TypedDict


class State(TypedDict):
    value: str
    log: Annotated[list, operator.add]


class ChildState(TypedDict):
    value: str
    log: Annotated[list, operator.add]
    inner: str


def one(state: ChildState):
    return {"inner": f"{state['value']} in"}


def ask(state: ChildState):
    answer = interrupt(f"{state['inner']}?")
    return {"value": f"{state['inner']} {answer}"}


def two(state: ChildState):
    return {"value": f"{state['value']} two"}


def before(state: State):
    return {"log": [f"before {state['value']}"]}


def after(state: State):
    return {"log": ["after"]}


def make(checkpointer):
    child = StateGraph(ChildState)
    child.add_node("one", one)
    child.add_node("ask", ask)
    child.add_node("two", two)
    child.add_edge(START, "one")
    child.add_edge("one", "ask")
    child.add_edge("ask", "two")

    builder = StateGraph(State)
    builder.add_node("before", before)
    builder.add_node("child", child.compile())
    builder.add_node("after", after)
    builder.add_edge(START, "before")
    builder.add_edge("before", "child")
    builder.add_edge("child", "after")
    return builder.compile(checkpointer=checkpointer)
