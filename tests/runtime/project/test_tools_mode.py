"""stream_mode "tools": tool calls, from graphs of both languages."""

from __future__ import annotations

import pytest

FILES = {
    "tools.py": """
from langchain_core.tools import tool
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode

@tool
def add(a: int, b: int) -> str:
    "Adds two numbers."
    return str(a + b)

builder = StateGraph(MessagesState).add_node("tools", ToolNode([add])).add_edge(START, "tools")
graph = builder.compile()
""",
    "tools.ts": """
import { tool } from "@langchain/core/tools";
import { MessagesAnnotation, START, StateGraph } from "@langchain/langgraph";
import { ToolNode } from "@langchain/langgraph/prebuilt";
import { z } from "zod";

const add = tool(({ a, b }: { a: number; b: number }) => String(a + b), {
  name: "add",
  description: "Adds two numbers.",
  schema: z.object({ a: z.number(), b: z.number() }),
});
export const graph = new StateGraph(MessagesAnnotation).addNode("tools", new ToolNode([add])).addEdge(START, "tools").compile();
""",
}
CALL = {
    "type": "ai",
    "content": "",
    "tool_calls": [{"id": "call-1", "name": "add", "args": {"a": 20, "b": 22}, "type": "tool_call"}],
}


@pytest.fixture(scope="module")
def server(project_module):
    return project_module(config={"graphs": {"python": "./tools.py:graph", "js": "./tools.ts:graph"}}, files=FILES)


@pytest.mark.parametrize("language", ["python", "js"])
def test_calls_of_tools_are_streamed(server, language):
    events = server.stream(language, {"messages": [CALL]}, server.thread(), stream_mode=["tools"])
    assert {event for event, _, _ in events} <= {"metadata", "tools", "end"}, events
    told = [data for event, data, _ in events if event == "tools"]
    assert len(told) == 2, events
    assert "add" in str(told[0]) and "42" in str(told[-1])
    assert "start" in told[0]["event"], told


@pytest.mark.parametrize("language", ["python", "js"])
def test_they_are_not_streamed_in_another_mode(server, language):
    events = server.stream(language, {"messages": [CALL]}, server.thread(), stream_mode=["updates"])
    assert "tools" not in {event for event, _, _ in events}
    assert any(event == "updates" for event, _, _ in events)
