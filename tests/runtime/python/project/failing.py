"""Fails after a step."""

from __future__ import annotations

import operator
from typing import Annotated, Any

from langgraph.graph import START, StateGraph
from typing_extensions import TypedDict


class State(TypedDict, total=False):
    log: Annotated[list[str], operator.add]


def fail(state: State) -> dict[str, Any]:
    raise ValueError("this always fails")


builder = StateGraph(State)
builder.add_node("good", lambda state: {"log": ["good"]})
builder.add_node("fail", fail)
builder.add_edge(START, "good")
builder.add_edge("good", "fail")
graph = builder.compile()
