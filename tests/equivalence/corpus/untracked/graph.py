"""An untracked value lives within a run and is never saved."""

import operator
from typing import Annotated

from langgraph.channels import UntrackedValue
from langgraph.graph import START, StateGraph
from langgraph.types import interrupt
from typing_extensions import TypedDict


class State(TypedDict):
    secret: Annotated[str, UntrackedValue]
    log: Annotated[list, operator.add]


def a(state: State):
    return {"log": [f"a: {state['secret']}"], "secret": "from a"}


def b(state: State):
    return {"log": [f"b: {state['secret']}"]}


def ask(state: State):
    return {"log": [interrupt("go on?")]}


def c(state: State):
    return {"log": ["c", state.get("secret")]}


def make(checkpointer):
    builder = StateGraph(State)
    builder.add_node("a", a)
    builder.add_node("b", b)
    builder.add_node("ask", ask)
    builder.add_node("c", c)
    builder.add_edge(START, "a")
    builder.add_edge("a", "b")
    builder.add_edge("b", "ask")
    builder.add_edge("ask", "c")
    return builder.compile(checkpointer=checkpointer)
