"""One task for each element, sent by an edge; results are combined in the order of the sends."""

import operator
from typing import Annotated

from langgraph.graph import START, StateGraph
from langgraph.types import Send
from typing_extensions import TypedDict


class State(TypedDict):
    items: list
    results: Annotated[list, operator.add]
    total: Annotated[int, operator.add]


def plan(state: State):
    return {"results": ["planned"]}


def fan_out(state: State):
    return [Send("work", {"name": item["name"], "size": item["size"]}) for item in state["items"]]


def work(arg: dict):
    return {"results": [f"{arg['name']}!"], "total": arg["size"]}


def sum_up(state: State):
    return {"results": [f"sum {state['total']}"]}


def make(checkpointer):
    builder = StateGraph(State)
    builder.add_node("plan", plan)
    builder.add_node("work", work)
    builder.add_node("sum", sum_up)
    builder.add_edge(START, "plan")
    builder.add_conditional_edges("plan", fan_out, ["work"])
    builder.add_edge("work", "sum")
    return builder.compile(checkpointer=checkpointer)
