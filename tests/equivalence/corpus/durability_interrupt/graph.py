"""Interrupts and breakpoints in each mode, with a finished parallel task."""

import operator
from typing import Annotated

from langgraph.graph import START, StateGraph
from langgraph.types import interrupt
from typing_extensions import TypedDict


class State(TypedDict):
    log: Annotated[list, operator.add]


def ask(state: State):
    return {"log": [[interrupt("one?"), interrupt("two?")]]}


def make(checkpointer):
    builder = StateGraph(State)
    builder.add_node("a", lambda state: {"log": ["a"]})
    builder.add_node("ask", ask)
    builder.add_node("done", lambda state: {"log": ["done"]})
    builder.add_node("end", lambda state: {"log": ["end"]})
    builder.add_edge(START, "a")
    builder.add_edge("a", "ask")
    builder.add_edge("a", "done")
    builder.add_edge(["ask", "done"], "end")
    return builder.compile(checkpointer=checkpointer)
