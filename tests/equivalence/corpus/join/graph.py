"""A node that waits for two others, of which one takes two steps more; twice in a row."""

import operator
from typing import Annotated

from langgraph.graph import START, StateGraph
from typing_extensions import TypedDict


class State(TypedDict):
    log: Annotated[list, operator.add]


def meet(state: State):
    return {"log": [f"meet after {state['log'][-1]}"]}


def make(checkpointer):
    builder = StateGraph(State)
    builder.add_node("fast", lambda state: {"log": ["fast"]})
    builder.add_node("slow", lambda state: {"log": ["slow"]})
    builder.add_node("slower", lambda state: {"log": ["slower"]})
    builder.add_node("slowest", lambda state: {"log": ["slowest"]})
    builder.add_node("meet", meet)
    builder.add_edge(START, "fast")
    builder.add_edge(START, "slow")
    builder.add_edge("slow", "slower")
    builder.add_edge("slower", "slowest")
    builder.add_edge(["fast", "slowest"], "meet")
    return builder.compile(checkpointer=checkpointer)
