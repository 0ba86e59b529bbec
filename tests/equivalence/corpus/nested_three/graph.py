"""Three levels of subgraphs with a loop, a fan-out and a breakpoint inside."""

import operator
from typing import Annotated

from langgraph.graph import END, START, StateGraph
from langgraph.types import Send
from typing_extensions import TypedDict


class State(TypedDict):
    n: int
    log: Annotated[list, operator.add]


class Output(TypedDict):
    log: Annotated[list, operator.add]


def count(state: State):
    return {"n": state["n"] - 1, "log": [state["n"]]}


def loop(state: State):
    return "count" if state["n"] > 0 else END


def fan_out(state: State):
    return [Send("work", {"k": k}) for k in range(state["n"])]


def work(arg: dict):
    return {"log": [f"work {arg['k']}"]}


def make(checkpointer):
    builder = StateGraph(State)
    builder.add_node("count", count)
    builder.add_node("work", work)
    builder.add_edge(START, "count")
    builder.add_conditional_edges("count", loop, ["count", END])
    builder.add_conditional_edges("count", fan_out, ["work"])
    inner = builder.compile()

    async def call_inner(state: State):
        return {"log": (await inner.ainvoke({"n": state["n"]}))["log"]}

    outer = StateGraph(State, output_schema=Output)
    outer.add_node("inner", call_inner)
    outer.add_node("closing", lambda state: {"log": ["closing"]})
    outer.add_edge(START, "inner")
    outer.add_edge("inner", "closing")

    builder = StateGraph(State)
    builder.add_node("outer", outer.compile(interrupt_before=["closing"]))
    builder.add_node("end", lambda state: {"log": ["end"]})
    builder.add_edge(START, "outer")
    builder.add_edge("outer", "end")
    return builder.compile(checkpointer=checkpointer)
