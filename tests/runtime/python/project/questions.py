"""Two interrupts in one node."""

from __future__ import annotations

import operator
from typing import Annotated, Any

from langgraph.graph import START, StateGraph
from langgraph.types import interrupt
from typing_extensions import TypedDict


class State(TypedDict, total=False):
    name: str
    age: int
    log: Annotated[list[str], operator.add]


def ask(state: State) -> dict[str, Any]:
    name = interrupt("What is your name?")
    age = interrupt({"question": "How old are you?", "name": name})
    return {"name": name, "age": age, "log": [f"{name} is {age}"]}


builder = StateGraph(State)
builder.add_node("ask", ask)
builder.add_node("done", lambda state: {"log": ["done"]})
builder.add_edge(START, "ask")
builder.add_edge("ask", "done")
graph = builder.compile()
