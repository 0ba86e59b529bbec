"""A subgraph with its own channels: input and result are mapped."""

import operator
from typing import Annotated

from langgraph.graph import START, StateGraph
from typing_extensions import TypedDict


class State(TypedDict):
    question: str
    answer: str
    log: Annotated[list, operator.add]


class Shout(TypedDict):
    text: str
    steps: Annotated[int, operator.add]


def upper(state: Shout):
    return {"text": state["text"].upper(), "steps": 1}


def mark(state: Shout):
    return {"text": f"{state['text']}!", "steps": 1}


def make(checkpointer):
    builder = StateGraph(Shout)
    builder.add_node("upper", upper)
    builder.add_node("mark", mark)
    builder.add_edge(START, "upper")
    builder.add_edge("upper", "mark")
    shout = builder.compile()

    async def ask(state: State):
        result = await shout.ainvoke({"text": f"{state['question']}?"})
        return {"answer": result["text"], "log": [result["steps"]]}

    def say(state: State):
        return {"log": [f"said {state['answer']}"]}

    builder = StateGraph(State)
    builder.add_node("ask", ask)
    builder.add_node("say", say)
    builder.add_edge(START, "ask")
    builder.add_edge("ask", "say")
    return builder.compile(checkpointer=checkpointer)
