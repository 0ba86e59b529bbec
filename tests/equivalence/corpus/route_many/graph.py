"""Conditional edges to several nodes, beside a plain edge from the same node."""

import operator
from typing import Annotated

from langgraph.graph import END, START, StateGraph
from typing_extensions import TypedDict


class State(TypedDict):
    want: list
    log: Annotated[list, operator.add]


def route(state: State):
    if "all" in state["want"]:
        return ["red", "green", "blue"]
    if "warm" in state["want"]:
        return ["red"]
    if "cold" in state["want"]:
        return ["blue", "green"]
    return END


def make(checkpointer):
    builder = StateGraph(State)
    builder.add_node("ask", lambda state: {"log": ["ask"]})
    builder.add_node("red", lambda state: {"log": ["red"]})
    builder.add_node("green", lambda state: {"log": ["green"]})
    builder.add_node("blue", lambda state: {"log": ["blue"]})
    builder.add_node("always", lambda state: {"log": ["always"]})
    builder.add_edge(START, "ask")
    builder.add_conditional_edges("ask", route, ["red", "green", "blue", END])
    builder.add_edge("ask", "always")
    return builder.compile(checkpointer=checkpointer)
