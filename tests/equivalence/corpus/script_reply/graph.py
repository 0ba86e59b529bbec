"""A scripted model: rules, whole replies, replies by word, by character and in chunks."""

from typing import Annotated

from langgraph.graph import START, MessagesState, StateGraph
from langgraph.graph.message import add_messages
from scripted import ScriptedModel


class State(MessagesState):
    notes: Annotated[list, add_messages]


async def whole(state: State):
    text = state["messages"][-1].content
    if text == "ping":
        reply = {"content": "pong"}
    else:
        usage = {"input_tokens": 3, "output_tokens": 4, "total_tokens": 7}
        reply = {"content": f"You said: {text}", "usage": usage}
    return {"messages": [await ScriptedModel(reply=reply).ainvoke(state["messages"])]}


async def words(state: State):
    usage = {"input_tokens": 1, "output_tokens": 3, "total_tokens": 4}
    reply = {"content": " Three  little\nwords ", "usage": usage}
    model = ScriptedModel(reply=reply, stream_by="word")
    return {"messages": [await model.ainvoke(state["messages"])]}


async def characters(state: State):
    model = ScriptedModel(reply={"content": "née"}, stream_by="character", delay=0.002)
    return {"messages": [await model.ainvoke(state["messages"])]}


async def pieces(state: State):
    model = ScriptedModel(reply={"content": "0123456789"}, stream_by=4)
    return {"notes": [await model.ainvoke(state["notes"])]}


def make(checkpointer):
    builder = StateGraph(State)
    builder.add_node("whole", whole)
    builder.add_node("words", words)
    builder.add_node("characters", characters)
    builder.add_node("pieces", pieces)
    builder.add_edge(START, "whole")
    builder.add_edge("whole", "words")
    builder.add_edge("words", "characters")
    builder.add_edge("characters", "pieces")
    return builder.compile(checkpointer=checkpointer)
