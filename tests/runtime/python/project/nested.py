"""Nested graphs, with an interrupt in the innermost."""

from __future__ import annotations

import operator
from typing import Annotated, Any

from langgraph.graph import START, StateGraph
from langgraph.types import interrupt
from typing_extensions import TypedDict


class State(TypedDict, total=False):
    ask: bool
    trail: Annotated[list[str], operator.add]


def inner_step(state: State) -> dict[str, Any]:
    if not state.get("ask"):
        return {"trail": ["inner"]}
    return {"trail": [f"inner {interrupt({'question': 'how?'})}"]}


inner = StateGraph(State)
inner.add_node("first", lambda state: {"trail": ["inner first"]})
inner.add_node("step", inner_step)
inner.add_edge(START, "first")
inner.add_edge("first", "step")

middle = StateGraph(State)
middle.add_node("inner", inner.compile())
middle.add_node("after", lambda state: {"trail": ["middle after"]})
middle.add_edge(START, "inner")
middle.add_edge("inner", "after")

outer = StateGraph(State)
outer.add_node("before", lambda state: {"trail": ["outer before"]})
outer.add_node("middle", middle.compile())
outer.add_edge(START, "before")
outer.add_edge("before", "middle")
graph = outer.compile()
