"""Two nodes interrupt in one step, a third does not; resumed one by one, together, or ambiguously."""

import operator
from typing import Annotated

from langgraph.graph import START, StateGraph
from langgraph.types import interrupt
from typing_extensions import TypedDict


class State(TypedDict):
    log: Annotated[list, operator.add]


def x(state: State):
    return {"log": [f"x: {interrupt('x?')}"]}


def y(state: State):
    return {"log": [f"y: {interrupt('y?')} {interrupt('y again?')}"]}


def quiet(state: State):
    return {"log": ["quiet"]}


def end(state: State):
    return {"log": ["end"]}


def make(checkpointer):
    builder = StateGraph(State)
    builder.add_node("x", x)
    builder.add_node("y", y)
    builder.add_node("quiet", quiet)
    builder.add_node("end", end)
    builder.add_edge(START, "x")
    builder.add_edge(START, "y")
    builder.add_edge(START, "quiet")
    builder.add_edge(["x", "y", "quiet"], "end")
    return builder.compile(checkpointer=checkpointer)
