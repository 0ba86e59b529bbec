"""A model that fails: at once, and in the middle of its message."""

import asyncio

from langgraph.graph import START, MessagesState, StateGraph
from scripted import ScriptedModel


async def whole(state: MessagesState):
    if state["messages"][-1].content == "fail":
        await asyncio.sleep(0.01)
        reply = {"error": "overloaded"}
    else:
        reply = {"content": "fine"}
    return {"messages": [await ScriptedModel(reply=reply).ainvoke(state["messages"])]}


async def streamed(state: MessagesState):
    if state["messages"][-2].content == "fail later":
        reply = {"content": "half an", "error": "connection lost"}
    else:
        reply = {"content": "all is well"}
    model = ScriptedModel(reply=reply, stream_by="word")
    return {"messages": [await model.ainvoke(state["messages"])]}


def make(checkpointer):
    builder = StateGraph(MessagesState)
    builder.add_node("whole", whole)
    builder.add_node("streamed", streamed)
    builder.add_edge(START, "whole")
    builder.add_edge("whole", "streamed")
    return builder.compile(checkpointer=checkpointer)
