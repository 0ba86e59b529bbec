"""Three interrupts in one node, each with the earlier resume values."""

import operator
from typing import Annotated

from langgraph.graph import START, StateGraph
from langgraph.types import interrupt
from typing_extensions import TypedDict


class State(TypedDict):
    log: Annotated[list, operator.add]


def ask(state: State):
    first = interrupt("first?")
    second = interrupt(f"after {first}?")
    third = interrupt({"all": [first, second]})
    return {"log": [first, second, third]}


def end(state: State):
    return {"log": ["end"]}


def make(checkpointer):
    builder = StateGraph(State)
    builder.add_node("ask", ask)
    builder.add_node("end", end)
    builder.add_edge(START, "ask")
    builder.add_edge("ask", "end")
    return builder.compile(checkpointer=checkpointer)
