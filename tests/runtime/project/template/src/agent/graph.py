"""The loop of model and tools."""

from datetime import datetime, timezone
from typing import Literal

from langchain.chat_models import init_chat_model
from langchain_core.messages import AIMessage
from langgraph.graph import StateGraph
from langgraph.prebuilt import ToolNode
from langgraph.runtime import Runtime

from agent.context import Context
from agent.state import InputState, State
from agent.tools import TOOLS


async def call_model(state: State, runtime: Runtime[Context]) -> dict[str, list[AIMessage]]:
    provider, name = runtime.context.model.split("/", maxsplit=1)
    model = init_chat_model(name, model_provider=provider).bind_tools(TOOLS)
    told = runtime.context.system_prompt.format(time=datetime.now(tz=timezone.utc).isoformat())
    answer = await model.ainvoke([{"role": "system", "content": told}, *state.messages])
    if state.is_last_step and answer.tool_calls:
        return {"messages": [AIMessage(id=answer.id, content="It took too many steps.")]}
    return {"messages": [answer]}


def route(state: State) -> Literal["__end__", "tools"]:
    return "tools" if state.messages[-1].tool_calls else "__end__"


builder = StateGraph(State, input_schema=InputState, context_schema=Context)
builder.add_node(call_model)
builder.add_node("tools", ToolNode(TOOLS))
builder.add_edge("__start__", "call_model")
builder.add_conditional_edges("call_model", route)
builder.add_edge("tools", "call_model")

graph = builder.compile(name="ReAct Agent")
