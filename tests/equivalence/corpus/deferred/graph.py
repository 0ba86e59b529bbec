"""A deferred node runs once, when everything else is done; so does a deferred join."""

import operator
from typing import Annotated

from langgraph.graph import START, StateGraph
from typing_extensions import TypedDict


class State(TypedDict):
    log: Annotated[list, operator.add]


def late(state: State):
    return {"log": [f"late after {state['log'][-1]}"]}


def make(checkpointer):
    builder = StateGraph(State)
    builder.add_node("a", lambda state: {"log": ["a"]})
    builder.add_node("b", lambda state: {"log": ["b"]})
    builder.add_node("b2", lambda state: {"log": ["b2"]})
    builder.add_node("b3", lambda state: {"log": ["b3"]})
    builder.add_node("late", late, defer=True)
    builder.add_node("meet", lambda state: {"log": ["meet"]}, defer=True)
    builder.add_node("end", lambda state: {"log": ["end"]})
    builder.add_edge(START, "a")
    builder.add_edge(START, "b")
    builder.add_edge("b", "b2")
    builder.add_edge("b2", "b3")
    builder.add_edge("a", "late")
    builder.add_edge("b2", "late")
    builder.add_edge(["a", "b"], "meet")
    builder.add_edge("late", "end")
    return builder.compile(checkpointer=checkpointer)
