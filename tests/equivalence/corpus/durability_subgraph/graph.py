"""Subgraphs of a run that saves only at its end: one that ends, one that fails."""

import operator
from typing import Annotated

from langgraph.graph import START, StateGraph
from typing_extensions import TypedDict


class State(TypedDict):
    fail: bool
    log: Annotated[list, operator.add]


class Output(TypedDict):
    log: Annotated[list, operator.add]


def bad(state: State):
    raise RuntimeError("inside")


def after_one(state: State):
    return "bad" if state["fail"] else "two"


def make(checkpointer):
    child = StateGraph(State, output_schema=Output)
    child.add_node("one", lambda state: {"log": ["one"]})
    child.add_node("bad", bad)
    child.add_node("two", lambda state: {"log": ["two"]})
    child.add_edge(START, "one")
    child.add_conditional_edges("one", after_one, ["bad", "two"])

    builder = StateGraph(State)
    builder.add_node("child", child.compile())
    builder.add_node("after", lambda state: {"log": ["after"]})
    builder.add_edge(START, "child")
    builder.add_edge("child", "after")
    return builder.compile(checkpointer=checkpointer)
