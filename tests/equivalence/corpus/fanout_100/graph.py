"""A hundred tasks in one step."""

import operator
from typing import Annotated

from langgraph.graph import START, StateGraph
from langgraph.types import Send
from typing_extensions import TypedDict


class State(TypedDict):
    n: int
    squares: Annotated[list, operator.add]
    sum: Annotated[int, operator.add]


def fan_out(state: State):
    return [Send("square", {"x": x}) for x in range(state["n"])]


def square(arg: dict):
    return {"squares": [arg["x"] * arg["x"]], "sum": 1}


def done(state: State):
    return {"sum": len(state["squares"])}


def make(checkpointer):
    builder = StateGraph(State)
    builder.add_node("square", square)
    builder.add_node("done", done)
    builder.add_conditional_edges(START, fan_out, ["square"])
    builder.add_edge("square", "done")
    return builder.compile(checkpointer=checkpointer)
