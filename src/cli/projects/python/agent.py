"""An agent that answers by itself until .env names a model."""

import os

from langchain_core.messages import AIMessage
from langgraph.graph import END, START, MessagesState, StateGraph


async def chat(state: MessagesState) -> dict:
    name = os.environ.get("MODEL")
    if name:
        from langchain.chat_models import init_chat_model

        return {"messages": [await init_chat_model(name).ainvoke(state["messages"])]}
    said = state["messages"][-1].text
    return {"messages": [AIMessage(f"You said: {said}. Change agent.py, and I shall say something else.")]}


builder = StateGraph(MessagesState)
builder.add_node("chat", chat)
builder.add_edge(START, "chat")
builder.add_edge("chat", END)

# Heddle keeps the threads: the graph needs no checkpointer of its own.
graph = builder.compile()
