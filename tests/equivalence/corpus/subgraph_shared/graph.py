"""A subgraph that shares some channels with its parent; each also has a private one."""

import operator
from typing import Annotated

from langgraph.graph import START, StateGraph
from typing_extensions import TypedDict


class State(TypedDict):
    text: str
    log: Annotated[list, operator.add]
    outer: str


class ChildState(TypedDict):
    text: str
    inner: str
    seen: Annotated[list, operator.add]


def one(state: ChildState):
    return {"inner": "i", "text": f"{state['text']} one"}


def two(state: ChildState):
    return {"text": f"{state['text']} two {state['inner']}", "seen": [state["inner"]]}


def before(state: State):
    return {"log": ["before"], "outer": "o"}


def after(state: State):
    return {"log": [f"after: {state['text']}"]}


def make(checkpointer):
    child = StateGraph(ChildState)
    child.add_node("one", one)
    child.add_node("two", two)
    child.add_edge(START, "one")
    child.add_edge("one", "two")

    builder = StateGraph(State)
    builder.add_node("before", before)
    builder.add_node("child", child.compile())
    builder.add_node("after", after)
    builder.add_edge(START, "before")
    builder.add_edge("before", "child")
    builder.add_edge("child", "after")
    return builder.compile(checkpointer=checkpointer)
