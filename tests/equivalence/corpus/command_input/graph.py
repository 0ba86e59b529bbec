"""Commands instead of input: update and goto on a finished thread and on a new one."""

import operator
from typing import Annotated

from langgraph.graph import END, START, StateGraph
from typing_extensions import TypedDict


class State(TypedDict):
    value: str
    log: Annotated[list, operator.add]


def a(state: State):
    return {"log": [f"a: {state['value']}"]}


def b(state: State):
    return {"log": ["b"]}


def work(arg: dict):
    return {"log": [f"work on {arg['job']}"]}


def after_b(state: State):
    return "work" if state["value"] == "work" else END


def make(checkpointer):
    builder = StateGraph(State)
    builder.add_node("a", a)
    builder.add_node("b", b)
    builder.add_node("work", work)
    builder.add_edge(START, "a")
    builder.add_edge("a", "b")
    builder.add_edge("b", END)
    builder.add_conditional_edges("b", after_b, ["work", END])
    return builder.compile(checkpointer=checkpointer)
