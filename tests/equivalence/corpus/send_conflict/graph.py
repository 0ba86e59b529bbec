"""Tasks of a fan-out that write one plain channel: an error when there are two."""

from langgraph.graph import START, StateGraph
from langgraph.types import Send
from typing_extensions import TypedDict


class State(TypedDict):
    items: list
    best: str


def fan_out(state: State):
    return [Send("pick", {"name": item}) for item in state["items"]]


def pick(arg: dict):
    return {"best": arg["name"]}


def make(checkpointer):
    builder = StateGraph(State)
    builder.add_node("pick", pick)
    builder.add_conditional_edges(START, fan_out, ["pick"])
    return builder.compile(checkpointer=checkpointer)
