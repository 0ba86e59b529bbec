"""A loop of two nodes by conditional edges."""

import operator
from typing import Annotated

from langgraph.graph import END, START, StateGraph
from typing_extensions import TypedDict


class State(TypedDict):
    text: Annotated[str, operator.add]


def enough(state: State):
    return END if len(state["text"]) >= 6 else "ping"


def make(checkpointer):
    builder = StateGraph(State)
    builder.add_node("ping", lambda state: {"text": "i"})
    builder.add_node("pong", lambda state: {"text": "o"})
    builder.add_edge(START, "ping")
    builder.add_edge("ping", "pong")
    builder.add_conditional_edges("pong", enough, ["ping", END])
    return builder.compile(checkpointer=checkpointer)
