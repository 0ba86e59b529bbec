"""A project from LangGraph's template, by `heddle dev` alone, with a scripted model behind OpenAI's
API."""

from __future__ import annotations

from pathlib import Path

import pytest
from langgraph_sdk import get_client

HERE = Path(__file__).resolve().parent
SCRIPT = {
    "rules": [
        {"when": {"tool_results": True}, "content": "It said {{results}}"},
        {"when": {"contains": "find"}, "tool_calls": [{"name": "search", "args": {"query": "heddles"}}]},
        {"content": "Hello, I was told: {{system}}"},
    ]
}


@pytest.fixture(scope="module")
def served(dev_module, mock_module):
    model = mock_module(SCRIPT)
    server = dev_module(folder=HERE / "template", env={"OPENAI_BASE_URL": model.base_url})
    # Users create it from .env.example before the first start; here the server warns and continues
    # without it.
    assert "does not exist" in server.said()
    server.stop()
    (server.project / ".env").write_text("# keys\nOPENAI_API_KEY=sk-mock\nexport MODEL='openai/mock'\nMOST_RESULTS=7\n")
    return server.restart()


async def run(served, text: str, **more):
    client = get_client(url=served.url)
    thread = await client.threads.create()
    input = {"messages": [{"role": "user", "content": text}]}
    return client, thread, await client.runs.wait(thread["thread_id"], "agent", input=input, **more)


async def test_the_loop_of_model_and_tools(served):
    client, thread, values = await run(served, "find it")
    kinds = [message["type"] for message in values["messages"]]
    assert kinds == ["human", "ai", "tool", "ai"]
    assert '"most": 7' in values["messages"][2]["content"]  # from .env, by the context
    assert values["messages"][3]["content"].startswith("It said ")
    state = await client.threads.get_state(thread["thread_id"])
    assert state["values"]["messages"] == values["messages"] and state["next"] == []
    history = await client.threads.get_history(thread["thread_id"])
    assert [entry["metadata"]["step"] for entry in history] == [3, 2, 1, 0, -1]


async def test_a_run_chooses_its_context(served):
    _, _, values = await run(served, "hello", context={"system_prompt": "be brief", "most_results": 1})
    assert values["messages"][-1]["content"] == "Hello, I was told: be brief"


async def test_tokens_are_streamed(served):
    client = get_client(url=served.url)
    thread = await client.threads.create()
    pieces = []
    input = {"messages": [{"role": "user", "content": "hello"}]}
    async for part in client.runs.stream(thread["thread_id"], "agent", input=input, stream_mode="messages-tuple"):
        if part.event == "messages":
            pieces.append(part.data[0]["content"])
    assert len(pieces) > 2 and "".join(pieces).startswith("Hello, I was told: You are a helpful assistant.")


async def test_schemas_and_drawing(served):
    client = get_client(url=served.url)
    assistant = (await client.assistants.search(graph_id="agent"))[0]["assistant_id"]
    schemas = await client.assistants.get_schemas(assistant)
    assert "messages" in schemas["input_schema"]["properties"]
    assert set(schemas["context_schema"]["properties"]) == {"system_prompt", "model", "most_results"}
    drawing = await client.assistants.get_graph(assistant)
    assert {node["id"] for node in drawing["nodes"]} == {"__start__", "call_model", "tools", "__end__"}


async def test_changed_code_is_reloaded(served):
    file = served.project / "src" / "agent" / "prompts.py"
    file.write_text('SYSTEM_PROMPT = "You are somebody else."\n')

    async def answer() -> str:
        return (await run(served, "hello"))[2]["messages"][-1]["content"]

    served.waits_for("Python graphs: reloaded")
    assert await answer() == "Hello, I was told: You are somebody else."


async def test_an_error_names_file_and_line(served):
    file = served.project / "src" / "agent" / "tools.py"
    before, times = file.read_text(), served.waits_for("  + agent").count("  + agent")
    file.write_text("def search(:\n")
    said = served.waits_for(f"SyntaxError: invalid syntax (tools.py, line 1)\n      {file}:1\n")
    assert "  ! agent" in said
    file.write_text(before)
    served.waits_for("  + agent", times=times + 1)
