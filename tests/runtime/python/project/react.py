"""A model in a loop with tools."""

from __future__ import annotations

from typing import Any

from langchain_core.tools import tool
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode, tools_condition
from model import ScriptedModel


@tool
def add(a: int, b: int) -> int:
    """The sum of two numbers."""
    return a + b


@tool
async def multiply(a: int, b: int) -> int:
    """The product of two numbers."""
    return a * b


model = ScriptedModel().bind_tools([add, multiply])


def agent(state: MessagesState) -> dict[str, Any]:
    return {"messages": [model.invoke(state["messages"])]}


builder = StateGraph(MessagesState)
builder.add_node("agent", agent)
builder.add_node("tools", ToolNode([add, multiply]))
builder.add_edge(START, "agent")
builder.add_conditional_edges("agent", tools_condition)
builder.add_edge("tools", "agent")
graph = builder.compile()
