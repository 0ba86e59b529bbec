"""The graphs of the tests in Python; those in graphs.ts and native.json are the same."""

import operator
from dataclasses import dataclass
from typing import Annotated, Any, TypedDict

from langchain_core.messages import AIMessage, AnyMessage
from langgraph.func import entrypoint, task
from langgraph.graph import START, StateGraph
from langgraph.graph.message import add_messages
from langgraph.types import Send, interrupt


class State(TypedDict):
    log: Annotated[list, operator.add]
    messages: Annotated[list[AnyMessage], add_messages]
    extra: Any


def says(name):
    return lambda state: {"log": [f"{name}:python"]}


def asks(*questions):
    def node(state):
        return {"log": [f"{interrupt(each)}:python" for each in questions]}

    return node


chat = (
    StateGraph(State)
    .add_node("reply", lambda s: {"messages": [AIMessage(f"{len(s['messages'])}:python")], "log": ["reply:python"]})
    .add_edge(START, "reply")
    .compile()
)

line = (
    StateGraph(State)
    .add_node("a", says("a"))
    .add_node("b", says("b"))
    .add_edge(START, "a")
    .add_edge("a", "b")
    .compile()
)

ask = StateGraph(State).add_node("ask", asks("one?")).add_edge(START, "ask").compile()

twice = StateGraph(State).add_node("ask", asks("one?", "two?")).add_edge(START, "ask").compile()

parallel = (
    StateGraph(State)
    .add_node("ask", asks("one?"))
    .add_node("done", says("done"))
    .add_node("end", says("end"))
    .add_edge(START, "ask")
    .add_edge(START, "done")
    .add_edge(["ask", "done"], "end")
    .compile()
)

sends = (
    StateGraph(State)
    .add_node("plan", says("plan"))
    .add_node("work", says("work"))
    .add_edge(START, "plan")
    .add_conditional_edges("plan", lambda s: [Send("work", n) for n in (1, 2, 3)], ["work"])
    .compile()
)

join = (
    StateGraph(State)
    .add_node("a", says("a"))
    .add_node("b1", says("b1"))
    .add_node("b2", says("b2"))
    .add_node("c", says("c"))
    .add_edge(START, "a")
    .add_edge(START, "b1")
    .add_edge("b1", "b2")
    .add_edge(["a", "b2"], "c")
    .compile()
)

inner = (
    StateGraph(State)
    .add_node("first", says("first"))
    .add_node("ask", asks("inner?"))
    .add_edge(START, "first")
    .add_edge("first", "ask")
    .compile()
)
nested = StateGraph(State).add_node("sub", inner).add_edge(START, "sub").compile()


@dataclass
class Place:
    name: str


foreign = (
    StateGraph(State)
    .add_node("a", lambda s: {"extra": Place("here")})
    .add_node("b", says("b"))
    .add_edge(START, "a")
    .add_edge("a", "b")
    .compile()
)


@task
def double(n):
    return n * 2


@entrypoint()
def functional(state):
    return {"log": [double(2).result(), interrupt("more?")]}
