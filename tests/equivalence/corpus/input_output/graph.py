"""A graph with an input, an output and a private channel; a node that reads one channel."""

import operator
from typing import Annotated

from langgraph.graph import START, StateGraph
from typing_extensions import TypedDict


class Input(TypedDict):
    question: str


class Output(TypedDict):
    answer: str


class State(TypedDict):
    question: str
    notes: Annotated[list, operator.add]
    answer: str


class Notes(TypedDict):
    notes: Annotated[list, operator.add]


class QuestionAndNotes(TypedDict):
    question: str
    notes: Annotated[list, operator.add]


def think(state: State):
    return {"notes": [f"thought about {state['question']}"]}


def blind(state: Notes):
    return {"notes": [f"seen: {state['notes'][0]}"]}


def say(state: QuestionAndNotes):
    return {"answer": f"{state['question']}: {state['notes'][1]}"}


def make(checkpointer):
    builder = StateGraph(State, input_schema=Input, output_schema=Output)
    builder.add_node("think", think)
    builder.add_node("blind", blind)
    builder.add_node("say", say)
    builder.add_edge(START, "think")
    builder.add_edge("think", "blind")
    builder.add_edge("blind", "say")
    return builder.compile(checkpointer=checkpointer)
