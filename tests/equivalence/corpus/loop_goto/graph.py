"""A loop by goto, until a number is reached."""

import operator
from typing import Annotated

from langgraph.graph import START, StateGraph
from langgraph.types import Command
from typing_extensions import TypedDict


class State(TypedDict):
    n: int
    log: Annotated[list, operator.add]


def count(state: State):
    return Command(
        update={"n": state["n"] + 1, "log": [state["n"]]},
        goto="count" if state["n"] < 4 else "done",
    )


def done(state: State):
    return {"log": ["done"]}


def make(checkpointer):
    builder = StateGraph(State)
    builder.add_node("count", count)
    builder.add_node("done", done)
    builder.add_edge(START, "count")
    return builder.compile(checkpointer=checkpointer)
