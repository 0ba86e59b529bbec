"""An interrupt inside a subgraph; the nodes before it do not run again."""

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
    steps: Annotated[list, operator.add]


def first(state: ChildState):
    return {"steps": ["first"]}


def ask(state: ChildState):
    one = interrupt(f"one {state['value']}?")
    two = interrupt("two?")
    return {"steps": ["asked"], "value": f"{one} {two}"}


def last(state: ChildState):
    return {"steps": ["last"], "value": f"{state['value']} {state['steps'][1]}"}


def before(state: State):
    return {"log": ["before"], "value": "v"}


def after(state: State):
    return {"log": [f"after {state['value']}"]}


def make(checkpointer):
    child = StateGraph(ChildState)
    child.add_node("first", first)
    child.add_node("ask", ask)
    child.add_node("last", last)
    child.add_edge(START, "first")
    child.add_edge("first", "ask")
    child.add_edge("ask", "last")

    builder = StateGraph(State)
    builder.add_node("before", before)
    builder.add_node("child", child.compile())
    builder.add_node("after", after)
    builder.add_edge(START, "before")
    builder.add_edge("before", "child")
    builder.add_edge("child", "after")
    return builder.compile(checkpointer=checkpointer)
