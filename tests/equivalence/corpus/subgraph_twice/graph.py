"""One graph as two parallel nodes and once more after them."""

import operator
from typing import Annotated

from langgraph.config import get_stream_writer
from langgraph.graph import START, StateGraph
from typing_extensions import TypedDict


class State(TypedDict):
    log: Annotated[list, operator.add]


class Step(TypedDict):
    name: str
    log: Annotated[list, operator.add]


class Output(TypedDict):
    log: Annotated[list, operator.add]


def one(state: Step):
    get_stream_writer()({"from": state["name"]})
    return {"log": [f"{state['name']} one"]}


def two(state: Step):
    return {"log": [f"{state['name']} two"]}


def make(checkpointer):
    builder = StateGraph(Step, output_schema=Output)
    builder.add_node("one", one)
    builder.add_node("two", two)
    builder.add_edge(START, "one")
    builder.add_edge("one", "two")
    step = builder.compile()

    async def left(state: State):
        return {"log": (await step.ainvoke({"name": "left"}))["log"]}

    async def right(state: State):
        return {"log": (await step.ainvoke({"name": "right"}))["log"]}

    async def again(state: State):
        return {"log": (await step.ainvoke({"name": f"again after {state['log'][-1]}"}))["log"]}

    builder = StateGraph(State)
    builder.add_node("left", left)
    builder.add_node("right", right)
    builder.add_node("again", again)
    builder.add_edge(START, "left")
    builder.add_edge(START, "right")
    builder.add_edge(["left", "right"], "again")
    return builder.compile(checkpointer=checkpointer)
