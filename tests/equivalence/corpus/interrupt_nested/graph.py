"""Parallel interrupts in a subgraph of a subgraph and beside it."""

import operator
from typing import Annotated

from langgraph.graph import START, StateGraph
from langgraph.types import interrupt
from typing_extensions import TypedDict


class State(TypedDict):
    log: Annotated[list, operator.add]


class Inner(TypedDict):
    word: str
    extra: str


def p(state: Inner):
    return {"word": f"{state['word']} {interrupt('p?')}"}


def q(state: Inner):
    return {"extra": interrupt("q?")}


def r(state: Inner):
    return {"word": f"{state['word']} {state['extra']}"}


def beside(state: State):
    return {"log": [f"beside {interrupt('beside?')}"]}


def make(checkpointer):
    builder = StateGraph(Inner)
    builder.add_node("p", p)
    builder.add_node("q", q)
    builder.add_node("r", r)
    builder.add_edge(START, "p")
    builder.add_edge(START, "q")
    builder.add_edge(["p", "q"], "r")
    inner = builder.compile()

    async def call_inner(state: State):
        return {"log": [(await inner.ainvoke({"word": "w"}))["word"]]}

    middle = StateGraph(State)
    middle.add_node("enter", lambda state: {"log": ["enter"]})
    middle.add_node("inner", call_inner)
    middle.add_node("leave", lambda state: {"log": ["leave"]})
    middle.add_edge(START, "enter")
    middle.add_edge("enter", "inner")
    middle.add_edge("inner", "leave")

    builder = StateGraph(State)
    builder.add_node("middle", middle.compile())
    builder.add_node("beside", beside)
    builder.add_node("end", lambda state: {"log": ["end"]})
    builder.add_edge(START, "middle")
    builder.add_edge(START, "beside")
    builder.add_edge(["middle", "beside"], "end")
    return builder.compile(checkpointer=checkpointer)
