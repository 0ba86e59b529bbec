"""A message that removes all messages before it."""

import operator
from typing import Annotated

from langchain_core.messages import AIMessage, RemoveMessage
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.graph.message import REMOVE_ALL_MESSAGES


class State(MessagesState):
    count: Annotated[int, operator.add]


def talk(state: State):
    return {"messages": [AIMessage("one"), AIMessage("two")], "count": len(state["messages"])}


def forget(state: State):
    return {
        "messages": [AIMessage("lost"), RemoveMessage(id=REMOVE_ALL_MESSAGES), AIMessage("kept")],
        "count": len(state["messages"]),
    }


def make(checkpointer):
    builder = StateGraph(State)
    builder.add_node("talk", talk)
    builder.add_node("forget", forget)
    builder.add_edge(START, "talk")
    builder.add_edge("talk", "forget")
    return builder.compile(checkpointer=checkpointer)
