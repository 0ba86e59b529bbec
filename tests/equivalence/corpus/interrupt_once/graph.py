"""An interrupt, resumed by value and by id; null and false are distinct resume values."""

import operator
from typing import Annotated

from langgraph.graph import START, StateGraph
from langgraph.types import interrupt
from typing_extensions import TypedDict


class State(TypedDict):
    name: str
    log: Annotated[list, operator.add]


def before(state: State):
    return {"log": ["before"]}


def ask(state: State):
    answer = interrupt({"question": f"your name, {state['name']}?", "options": [1, 2]})
    return {"log": ["answer", answer]}


def after(state: State):
    return {"log": ["after"]}


def make(checkpointer):
    builder = StateGraph(State)
    builder.add_node("before", before)
    builder.add_node("ask", ask)
    builder.add_node("after", after)
    builder.add_edge(START, "before")
    builder.add_edge("before", "ask")
    builder.add_edge("ask", "after")
    return builder.compile(checkpointer=checkpointer)
