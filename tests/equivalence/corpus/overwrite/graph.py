"""An overwrite bypasses the reducer."""

import operator
from typing import Annotated

from langgraph.graph import START, StateGraph
from langgraph.types import Overwrite
from typing_extensions import TypedDict


class State(TypedDict):
    log: Annotated[list, operator.add]
    count: Annotated[int, operator.add]


def add(state: State):
    return {"log": ["add"], "count": 1}


def reset(state: State):
    return {"log": Overwrite([f"reset after {state['log'][-1]}"]), "count": 1}


def make(checkpointer):
    builder = StateGraph(State)
    builder.add_node("add", add)
    builder.add_node("reset", reset)
    builder.add_edge(START, "add")
    builder.add_edge("add", "reset")
    return builder.compile(checkpointer=checkpointer)
