"""A node of a subgraph sends the parent graph to another node, with an update."""

import operator
from typing import Annotated

from langgraph.graph import START, StateGraph
from langgraph.types import Command
from typing_extensions import TypedDict


class State(TypedDict):
    log: Annotated[list, operator.add]
    who: str


class ChildState(TypedDict):
    log: Annotated[list, operator.add]
    who: str
    own: int


def one(state: ChildState):
    return {"log": ["one"], "own": 1}


def two(state: ChildState):
    return Command(
        graph=Command.PARENT,
        update={"log": ["two"], "who": "two"},
        goto=["x", "y"] if "both" in state["log"] else "x",
    )


def never(state: ChildState):
    return {"log": ["never"]}


def x(state: State):
    return {"log": [f"x by {state['who']}"]}


def y(state: State):
    return {"log": ["y"]}


def make(checkpointer):
    child = StateGraph(ChildState)
    child.add_node("one", one)
    child.add_node("two", two)
    child.add_node("never", never)
    child.add_edge(START, "one")
    child.add_edge("one", "two")
    child.add_edge("two", "never")

    builder = StateGraph(State)
    builder.add_node("child", child.compile())
    builder.add_node("x", x)
    builder.add_node("y", y)
    builder.add_edge(START, "child")
    return builder.compile(checkpointer=checkpointer)
