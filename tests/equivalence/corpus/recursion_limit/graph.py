"""An endless loop, stopped by the limit of the graph or of the call, and resumed."""

import operator
from typing import Annotated

from langgraph.graph import START, StateGraph
from langgraph.types import Command
from typing_extensions import TypedDict


class State(TypedDict):
    n: Annotated[int, operator.add]


def a(state: State):
    return {"n": 1}


def b(state: State):
    return Command(update={"n": 10}, goto="a")


def make(checkpointer):
    builder = StateGraph(State)
    builder.add_node("a", a)
    builder.add_node("b", b)
    builder.add_edge(START, "a")
    builder.add_edge("a", "b")
    return builder.compile(checkpointer=checkpointer).with_config(recursion_limit=5)
