"""Models in two parallel nodes, one of them a subgraph with shared messages."""

from langchain_core.messages import AIMessage
from langgraph.graph import START, MessagesState, StateGraph
from scripted import ScriptedModel


async def think(state: MessagesState):
    model = ScriptedModel(reply={"content": "it is so"}, stream_by="word", delay=0.002)
    return {"messages": [await model.ainvoke(state["messages"])]}


def note(state: MessagesState):
    return {"messages": [AIMessage("noted")]}


async def critic(state: MessagesState):
    model = ScriptedModel(reply={"content": "I doubt it"}, stream_by="word", delay=0.003)
    return {"messages": [await model.ainvoke(state["messages"])]}


async def sum_up(state: MessagesState):
    text = f"{state['messages'][1].content} / {state['messages'][2].content}"
    return {"messages": [await ScriptedModel(reply={"content": text}).ainvoke(state["messages"])]}


def make(checkpointer):
    expert = StateGraph(MessagesState)
    expert.add_node("think", think)
    expert.add_node("note", note)
    expert.add_edge(START, "think")
    expert.add_edge("think", "note")

    builder = StateGraph(MessagesState)
    builder.add_node("expert", expert.compile())
    builder.add_node("critic", critic, metadata={"role": "critic"})
    builder.add_node("sum", sum_up)
    builder.add_edge(START, "expert")
    builder.add_edge(START, "critic")
    builder.add_edge(["expert", "critic"], "sum")
    return builder.compile(checkpointer=checkpointer)
