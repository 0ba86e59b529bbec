"""Every reducer that combines two values, in two steps and in two parallel tasks."""

import operator
from typing import Annotated

from langgraph.channels import BinaryOperatorAggregate
from langgraph.graph import START, StateGraph
from typing_extensions import TypedDict


def larger(a: int, b: int):
    return max(a, b)


class State(TypedDict):
    sum: Annotated[int, operator.add]
    text: Annotated[str, operator.add]
    list: Annotated[list, operator.add]
    object: Annotated[dict, operator.or_]
    greatest: Annotated[int, larger]
    least: Annotated[int, BinaryOperatorAggregate(lambda: 100, min)]
    all: Annotated[bool, BinaryOperatorAggregate(lambda: True, operator.and_)]
    some: Annotated[bool, operator.or_]
    score: Annotated[float, BinaryOperatorAggregate(lambda: 0.5, operator.add)]


def a(state: State):
    return {
        "sum": 2,
        "text": "a",
        "list": ["a"],
        "object": {"a": 1, "both": "a"},
        "greatest": 7,
        "least": 7,
        "all": True,
        "some": False,
        "score": 0.25,
    }


def b(state: State):
    return {
        "sum": 3,
        "text": "b",
        "list": ["b", {"deep": [1, None]}],
        "object": {"b": 2, "both": "b"},
        "greatest": 5,
        "least": 5,
        "all": False,
        "some": True,
        "score": 1,
    }


def c(state: State):
    return {"sum": state["greatest"], "text": state["text"], "list": [state["list"][0]]}


def make(checkpointer):
    builder = StateGraph(State)
    builder.add_node("a", a)
    builder.add_node("b", b)
    builder.add_node("c", c)
    builder.add_edge(START, "a")
    builder.add_edge(START, "b")
    builder.add_edge("a", "c")
    builder.add_edge("b", "c")
    return builder.compile(checkpointer=checkpointer)
