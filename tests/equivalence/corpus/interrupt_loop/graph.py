"""An interrupt that repeats until the resume value is right."""

import operator
from typing import Annotated

from langgraph.graph import START, StateGraph
from langgraph.types import Command, interrupt
from typing_extensions import TypedDict


class State(TypedDict):
    tries: Annotated[int, operator.add]
    log: Annotated[list, operator.add]


def ask(state: State):
    answer = interrupt(f"guess number {state['tries']}")
    return Command(update={"tries": 1, "log": [answer]}, goto="right" if answer == 7 else "ask")


def right(state: State):
    return {"log": [f"right after {state['tries']}"]}


def make(checkpointer):
    builder = StateGraph(State)
    builder.add_node("ask", ask)
    builder.add_node("right", right)
    builder.add_edge(START, "ask")
    return builder.compile(checkpointer=checkpointer)
