"""A topic holds the writes of one step; an accumulating one those of all steps."""

import operator
from typing import Annotated

from langgraph.channels import Topic
from langgraph.graph import START, StateGraph
from typing_extensions import TypedDict


class State(TypedDict):
    now: Annotated[list, Topic(str)]
    ever: Annotated[list, Topic(str, accumulate=True)]
    seen: Annotated[list, operator.add]


def a(state: State):
    return {"now": "a", "ever": "a", "seen": [f"a saw {state['now'][0]}"]}


def b(state: State):
    return {"now": ["b1", "b2"], "ever": ["b1", "b2"]}


def c(state: State):
    return {"seen": ["c saw", state.get("now")]}


def d(state: State):
    return {"seen": ["d saw", state.get("now"), state["ever"]]}


def make(checkpointer):
    builder = StateGraph(State)
    builder.add_node("a", a)
    builder.add_node("b", b)
    builder.add_node("c", c)
    builder.add_node("d", d)
    builder.add_edge(START, "a")
    builder.add_edge(START, "b")
    builder.add_edge("a", "c")
    builder.add_edge("b", "c")
    builder.add_edge("c", "d")
    return builder.compile(checkpointer=checkpointer)
