"""A subgraph with its own memory counts across runs; its namespace has no task id."""

import operator
from typing import Annotated

from langgraph.graph import START, StateGraph
from langgraph.types import interrupt
from typing_extensions import TypedDict


class State(TypedDict):
    text: str
    log: Annotated[list, operator.add]


class Counter(TypedDict):
    text: str
    visits: Annotated[int, operator.add]


def visit(state: Counter):
    return {"visits": 1}


def ask(state: Counter):
    answer = interrupt(f"visit {state['visits']}?")
    return {"text": f"{state['text']} {state['visits']} {answer}"}


def after(state: State):
    return {"log": [f"after {state['text']}"]}


def make(checkpointer):
    counter = StateGraph(Counter)
    counter.add_node("visit", visit)
    counter.add_node("ask", ask)
    counter.add_edge(START, "visit")
    counter.add_edge("visit", "ask")

    builder = StateGraph(State)
    builder.add_node("counter", counter.compile(checkpointer=True))
    builder.add_node("after", after)
    builder.add_edge(START, "counter")
    builder.add_edge("counter", "after")
    return builder.compile(checkpointer=checkpointer)
