"""Updates as a node whose edges send; a second update while the sends are pending."""

import operator
from typing import Annotated

from langgraph.graph import START, StateGraph
from langgraph.types import Send
from typing_extensions import TypedDict


class State(TypedDict):
    items: list
    log: Annotated[list, operator.add]


def plan(state: State):
    return {"log": ["plan"]}


def fan_out(state: State):
    return [Send("work", {"item": item}) for item in state["items"]]


def work(arg: dict):
    return {"log": [f"work {arg['item']}"]}


def end(state: State):
    return {"log": ["end"]}


def make(checkpointer):
    builder = StateGraph(State)
    builder.add_node("plan", plan)
    builder.add_node("work", work)
    builder.add_node("end", end)
    builder.add_edge(START, "plan")
    builder.add_conditional_edges("plan", fan_out, ["work"])
    builder.add_edge("work", "end")
    return builder.compile(checkpointer=checkpointer)
