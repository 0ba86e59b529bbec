"""Sends whose tasks send again, then a reduction that waits for all."""

import json
import operator
from typing import Annotated

from langgraph.graph import START, StateGraph
from langgraph.types import Command, Send
from typing_extensions import TypedDict


class State(TypedDict):
    books: list
    counts: Annotated[dict, operator.or_]
    summary: str


def each_book(state: State):
    return [Send("read", book) for book in state["books"]]


def read(book: dict):
    return Command(goto=[Send("count", {"title": book["title"], "chapter": chapter}) for chapter in book["chapters"]])


def count(arg: dict):
    return {"counts": {f"{arg['title']}/{arg['chapter']}": arg["chapter"]}}


def reduce(state: State):
    return {"summary": json.dumps(state["counts"], separators=(",", ":"))}


def make(checkpointer):
    builder = StateGraph(State)
    builder.add_node("read", read)
    builder.add_node("count", count)
    builder.add_node("reduce", reduce, defer=True)
    builder.add_conditional_edges(START, each_book, ["read"])
    builder.add_edge("count", "reduce")
    return builder.compile(checkpointer=checkpointer)
