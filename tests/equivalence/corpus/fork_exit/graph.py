"""Branches whose runs save only at their end, with a fan-out and an interrupt."""

import operator
from typing import Annotated

from langgraph.graph import START, StateGraph
from langgraph.types import Send, interrupt
from typing_extensions import TypedDict


class State(TypedDict):
    items: list
    log: Annotated[list, operator.add]


def plan(state: State):
    return {"log": ["plan"]}


def fan_out(state: State):
    return [Send("work", {"item": item}) for item in state["items"]]


def work(arg: dict):
    return {"log": [f"work {arg['item']}"]}


def ask(state: State):
    return {"log": [interrupt("fine?")]}


def make(checkpointer):
    builder = StateGraph(State)
    builder.add_node("plan", plan)
    builder.add_node("work", work)
    builder.add_node("ask", ask)
    builder.add_edge(START, "plan")
    builder.add_conditional_edges("plan", fan_out, ["work"])
    builder.add_edge("work", "ask")
    return builder.compile(checkpointer=checkpointer)
