"""Two consecutive nodes; the later value replaces the earlier one."""

from langgraph.graph import END, START, StateGraph
from typing_extensions import TypedDict


class State(TypedDict):
    value: str
    seen: str


def first(state: State):
    return {"value": f"first after {state['value']}"}


def second(state: State):
    return {"value": "second", "seen": state["value"]}


def make(checkpointer):
    builder = StateGraph(State)
    builder.add_node("first", first)
    builder.add_node("second", second)
    builder.add_edge(START, "first")
    builder.add_edge("first", "second")
    builder.add_edge("second", END)
    return builder.compile(checkpointer=checkpointer)
