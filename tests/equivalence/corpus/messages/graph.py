"""Messages are added, replaced by id and removed; missing ids are generated."""

from langchain_core.messages import (
    AIMessage,
    HumanMessage,
    RemoveMessage,
    SystemMessage,
    ToolMessage,
)
from langgraph.graph import START, MessagesState, StateGraph


def answer(state: MessagesState):
    return {"messages": [AIMessage(f"you said: {state['messages'][-1].content}")]}


def replace(state: MessagesState):
    return {
        "messages": [
            HumanMessage("replaced", id="m1"),
            AIMessage("new", id="m9", name="editor"),
        ]
    }


def remove(state: MessagesState):
    return {"messages": [RemoveMessage(id="m2"), SystemMessage("one was removed")]}


def single(state: MessagesState):
    return {"messages": ToolMessage("42", tool_call_id="c1")}


def make(checkpointer):
    builder = StateGraph(MessagesState)
    builder.add_node("answer", answer)
    builder.add_node("replace", replace)
    builder.add_node("remove", remove)
    builder.add_node("single", single)
    builder.add_edge(START, "answer")
    builder.add_edge("answer", "replace")
    builder.add_edge("replace", "remove")
    builder.add_edge("remove", "single")
    return builder.compile(checkpointer=checkpointer)
