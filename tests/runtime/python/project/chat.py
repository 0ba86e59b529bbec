"""A chat: one model call per turn."""

from __future__ import annotations

from typing import Any

from langgraph.graph import START, MessagesState, StateGraph
from model import ScriptedModel

model = ScriptedModel()


async def agent(state: MessagesState) -> dict[str, Any]:
    return {"messages": [await model.ainvoke(state["messages"])]}


builder = StateGraph(MessagesState)
builder.add_node("agent", agent)
builder.add_edge(START, "agent")
graph = builder.compile()
