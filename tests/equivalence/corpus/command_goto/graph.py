"""Update and goto in one result, beside edges of the same node; a branch node; goto to the end."""

import operator
from typing import Annotated

from langgraph.graph import END, START, StateGraph
from langgraph.types import Command
from typing_extensions import TypedDict


class State(TypedDict):
    n: int
    log: Annotated[list, operator.add]


def a(state: State):
    return Command(update={"log": ["a"]}, goto=["c", "choose"])


def b(state: State):
    return {"log": ["b"]}


def c(state: State):
    return Command(update={"log": ["c"]}, goto=END)


def choose(state: State):
    if state["n"] > 10:
        return Command(goto=["b", "c"])
    return Command(goto="b" if state["n"] > 1 else END)


def make(checkpointer):
    builder = StateGraph(State)
    builder.add_node("a", a)
    builder.add_node("b", b)
    builder.add_node("c", c)
    builder.add_node("choose", choose)
    builder.add_edge(START, "a")
    builder.add_edge("a", "b")
    return builder.compile(checkpointer=checkpointer)
