"""Nodes that send HTTP requests, with and without a body, and use the response."""

import json
import operator
import urllib.request
from typing import Annotated

from langgraph.graph import START, StateGraph
from typing_extensions import TypedDict


class State(TypedDict):
    server: str
    word: str
    log: Annotated[list, operator.add]


def ask(request):
    with urllib.request.urlopen(request) as response:
        return response.status, json.loads(response.read())


def read(state: State):
    status, body = ask(urllib.request.Request(f"{state['server']}/read"))
    return {"log": [f"{status} {body['method']} {body['path']}"]}


def write(state: State):
    word = state["word"]
    request = urllib.request.Request(
        f"{state['server']}/write/{word}",
        data=json.dumps({"word": word, "list": [1, 2]}).encode(),
        headers={"Content-Type": "application/json", "X-Word": word},
        method="POST",
    )
    status, body = ask(request)
    return {"log": [body], "word": f"{body['body']['word']}!"}


def make(checkpointer):
    builder = StateGraph(State)
    builder.add_node("read", read)
    builder.add_node("write", write)
    builder.add_edge(START, "read")
    builder.add_edge("read", "write")
    return builder.compile(checkpointer=checkpointer)
