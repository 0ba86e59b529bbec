"""The loop of an agent: a model that calls tools until it has a result."""

from langchain_core.messages import HumanMessage, ToolMessage
from langgraph.graph import END, START, MessagesState, StateGraph
from scripted import ScriptedModel


def choose_reply(message):
    if isinstance(message, HumanMessage):
        return {
            "content": "Let me look.",
            "tool_calls": [
                {"name": "weather", "args": {"city": "Bern", "days": [1, 2]}, "id": "call_1"},
                {"name": "time", "args": {}, "id": "call_2"},
            ],
        }
    if message.tool_call_id == "call_2":
        return {"tool_calls": [{"name": "weather", "args": {"city": "Basel"}, "id": "call_3"}]}
    return {"content": f"It is {message.content}."}


async def agent(state: MessagesState):
    model = ScriptedModel(reply=choose_reply(state["messages"][-1]), stream_by="word")
    return {"messages": [await model.ainvoke(state["messages"])]}


def tools(state: MessagesState):
    return {
        "messages": [
            ToolMessage(f"result of {call['name']}", tool_call_id=call["id"], name=call["name"])
            for call in state["messages"][-1].tool_calls
        ]
    }


def after_agent(state: MessagesState):
    return "tools" if state["messages"][-1].tool_calls else END


def make(checkpointer):
    builder = StateGraph(MessagesState)
    builder.add_node("agent", agent)
    builder.add_node("tools", tools)
    builder.add_edge(START, "agent")
    builder.add_conditional_edges("agent", after_agent, ["tools", END])
    builder.add_edge("tools", "agent")
    return builder.compile(checkpointer=checkpointer)
