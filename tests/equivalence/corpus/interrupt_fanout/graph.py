"""Tasks of a fan-out that interrupt, each with its own value; some do not."""

import operator
from typing import Annotated

from langgraph.graph import START, StateGraph
from langgraph.types import Send, interrupt
from typing_extensions import TypedDict


class State(TypedDict):
    people: list
    log: Annotated[list, operator.add]


def plan(state: State):
    return {"log": ["plan"]}


def ask_all(state: State):
    return [Send("ask", {"name": name}) for name in state["people"]]


def note_all(state: State):
    return [Send("note", {"name": name}) for name in state["people"]]


def ask(arg: dict):
    return {"log": [f"{arg['name']}: {interrupt(arg['name'] + '?')}"]}


def note(arg: dict):
    return {"log": [f"note {arg['name']}"]}


def end(state: State):
    return {"log": ["end"]}


def make(checkpointer):
    builder = StateGraph(State)
    builder.add_node("plan", plan)
    builder.add_node("ask", ask)
    builder.add_node("note", note)
    builder.add_node("end", end)
    builder.add_edge(START, "plan")
    builder.add_conditional_edges("plan", ask_all, ["ask"])
    builder.add_conditional_edges("plan", note_all, ["note"])
    builder.add_edge("ask", "end")
    return builder.compile(checkpointer=checkpointer)
