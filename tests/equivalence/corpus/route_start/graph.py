"""Conditional edges from the start, to one node, to two, or to the end at once."""

import operator
from typing import Annotated

from langgraph.graph import END, START, StateGraph
from typing_extensions import TypedDict


class State(TypedDict):
    text: str
    log: Annotated[list, operator.add]


def short(state: State):
    return {"log": [f"short: {state['text']}"]}


def long(state: State):
    return {"log": [state["text"].upper()]}


def route(state: State):
    if state["text"] == "":
        return END
    if "both" in state["text"]:
        return ["short", "long"]
    return "long" if len(state["text"]) > 5 else "short"


def make(checkpointer):
    builder = StateGraph(State)
    builder.add_node("short", short)
    builder.add_node("long", long)
    builder.add_conditional_edges(START, route, ["short", "long", END])
    return builder.compile(checkpointer=checkpointer)
