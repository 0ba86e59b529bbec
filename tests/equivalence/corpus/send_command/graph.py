"""Sends from a node, to different nodes, with nested arguments, beside a plain goto."""

import operator
from typing import Annotated

from langgraph.graph import START, StateGraph
from langgraph.types import Command, Send
from typing_extensions import TypedDict


class State(TypedDict):
    topics: list
    log: Annotated[list, operator.add]


def split(state: State):
    return Command(
        goto=[Send("write", {"job": {"topic": topic, "deep": [{"len": len(topic)}]}}) for topic in state["topics"]]
    )


def write(arg: dict):
    job = arg["job"]
    return Command(update={"log": [f"{job['topic']} has {job['deep'][0]['len']}"]}, goto="gather")


def gather(state: State):
    return Command(
        update={"log": [f"gather {state['log'][0]}"]},
        goto=[Send("print", {"text": "one"}), "finish", Send("print", {"text": "two"})],
    )


def print_(arg: dict):
    return {"log": [f"print {arg['text']}"]}


def finish(state: State):
    return {"log": ["finish"]}


def make(checkpointer):
    builder = StateGraph(State)
    builder.add_node("split", split)
    builder.add_node("write", write)
    builder.add_node("gather", gather)
    builder.add_node("print", print_)
    builder.add_node("finish", finish)
    builder.add_edge(START, "split")
    return builder.compile(checkpointer=checkpointer)
