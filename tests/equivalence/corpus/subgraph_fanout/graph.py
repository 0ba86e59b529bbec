"""Sends to a node that is a subgraph; one of its tasks interrupts."""

import operator
from typing import Annotated

from langgraph.graph import END, START, StateGraph
from langgraph.types import Send, interrupt
from typing_extensions import TypedDict


class State(TypedDict):
    items: list
    log: Annotated[list, operator.add]


class Work(TypedDict):
    item: str
    log: Annotated[list, operator.add]


def look(state: Work):
    return {"log": [f"look at {state['item']}"]}


def after_look(state: Work):
    return END if state["item"] == "plain" else "ask"


def ask(state: Work):
    return {"log": [f"{state['item']}: {interrupt(state['item'] + '?')}"]}


def fan_out(state: State):
    return [Send("work", {"item": item, "log": []}) for item in state["items"]]


def make(checkpointer):
    work = StateGraph(Work)
    work.add_node("look", look)
    work.add_node("ask", ask)
    work.add_edge(START, "look")
    work.add_conditional_edges("look", after_look, ["ask", END])

    builder = StateGraph(State)
    builder.add_node("plan", lambda state: {"log": ["plan"]})
    builder.add_node("work", work.compile())
    builder.add_node("end", lambda state: {"log": ["end"]})
    builder.add_edge(START, "plan")
    builder.add_conditional_edges("plan", fan_out, ["work"])
    builder.add_edge("work", "end")
    return builder.compile(checkpointer=checkpointer)
