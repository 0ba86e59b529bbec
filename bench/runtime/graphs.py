"""The Python graphs of both servers: an echo, and an agent that calls a tool five times."""

from langchain_core.messages import AIMessage, ToolMessage
from langgraph.graph import END, START, MessagesState, StateGraph

ROUNDS = 5


async def reply(state: MessagesState):
    return {"messages": [AIMessage(f"You said: {state['messages'][-1].content}")]}


async def agent(state: MessagesState):
    rounds = 0
    for message in reversed(state["messages"]):
        if message.type == "human":
            break
        rounds += message.type == "tool"
    if rounds == ROUNDS:
        return {"messages": [AIMessage(f"You said: {message.content}")]}
    call = {"name": "look", "args": {"n": rounds}, "id": f"call-{rounds}"}
    return {"messages": [AIMessage("", tool_calls=[call])]}


async def tools(state: MessagesState):
    calls = state["messages"][-1].tool_calls
    return {"messages": [ToolMessage(f"looked {call['args']['n']}", tool_call_id=call["id"]) for call in calls]}


def route(state: MessagesState):
    return "tools" if state["messages"][-1].tool_calls else END


echo = StateGraph(MessagesState).add_node("reply", reply).add_edge(START, "reply").add_edge("reply", END).compile()

loop = (
    StateGraph(MessagesState)
    .add_node("agent", agent)
    .add_node("tools", tools)
    .add_edge(START, "agent")
    .add_conditional_edges("agent", route, ["tools", END])
    .add_edge("tools", "agent")
    .compile()
)
