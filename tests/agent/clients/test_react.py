"""The graph `agent`: turns with no, one and five tool calls; streams; input; configuration."""

from __future__ import annotations

import pytest
from plain import human
from weather import Weather

CITIES = ["Bern", "Lima", "Oslo", "Rome", "Suva"]
MODES = ["messages-tuple", "messages", "updates", "values"]


def use(*cities: str) -> str:
    return " and ".join(f'use weather with {{"city": "{city}"}}' for city in cities)


def kinds(messages: list[dict]) -> list[str]:
    return [message["type"] for message in messages]


def test_a_turn_without_tools(heddle, mock):
    model, server = mock(), heddle()
    values = server.wait("agent", human("hello"), configurable=model.configurable())
    assert [message["content"] for message in values["messages"]] == ["hello", "You said: hello"]
    assert len(model.requests()) == 1


def test_a_turn_with_one_call(heddle, mock, scripted):
    model, server, weather = mock(), heddle(), Weather(scripted)
    values = server.wait("agent", human(use("Bern")), configurable=model.configurable(http_tools=[weather.tool]))
    messages = values["messages"]
    assert kinds(messages) == ["human", "ai", "tool", "ai"]
    assert messages[2]["tool_call_id"] == messages[1]["tool_calls"][0]["id"]
    assert messages[2]["content"] == "sunny in Bern" and messages[2]["status"] == "success"
    assert messages[3]["content"] == "The tools said: sunny in Bern"
    offered = model.requests()[0]["body"]["tools"]
    assert [tool["function"]["name"] for tool in offered] == ["weather"]


def test_five_calls_run_in_parallel(heddle, mock, scripted):
    # The tool responds when five calls wait for it: sequential calls would block.
    model, server, weather = mock(), heddle(), Weather(scripted, crowd=5)
    values = server.wait("agent", human(use(*CITIES)), configurable=model.configurable(http_tools=[weather.tool]))
    messages = values["messages"]
    assert kinds(messages) == ["human", "ai"] + 5 * ["tool"] + ["ai"]
    asked = {call["id"]: call["args"]["city"] for call in messages[1]["tool_calls"]}
    answered = {message["tool_call_id"]: message["content"] for message in messages[2:7]}
    assert answered == {identity: f"sunny in {city}" for identity, city in asked.items()}
    assert list(asked.values()) == CITIES and weather.cities == CITIES
    sent = model.requests()[1]["body"]["messages"]
    assert [message["role"] for message in sent] == ["system", "user", "assistant"] + 5 * ["tool"]


def test_the_streamed_text_equals_the_stored_text(heddle, mock, scripted):
    model, server, weather = mock(), heddle(), Weather(scripted, crowd=5)
    thread = server.thread()
    stream = server.stream("agent", human(use(*CITIES), "m1"), thread=thread, stream_mode=MODES,
                           configurable=model.configurable(http_tools=[weather.tool]))  # fmt: skip
    stored = server.state(thread)["values"]["messages"]
    ids = [message["id"] for message in stored]
    assert len(set(ids)) == len(ids) and ids[0] == "m1"

    # Chunks: in the order of the turn, with the ids of the state; together they are the whole text.
    chunks = [data[0] for event, data, _ in stream if event == "messages"]
    texts: dict[str, str] = {}
    for chunk in chunks:
        texts[chunk["id"]] = texts.get(chunk["id"], "") + chunk["content"]
    by_id = {message["id"]: message for message in stored}
    assert set(texts) <= set(ids)
    assert {identity: by_id[identity]["content"] for identity in texts} == texts
    first, last = stored[1]["id"], stored[-1]["id"]
    tools = [message["id"] for message in stored[2:-1]]
    order = list(dict.fromkeys(chunk["id"] for chunk in chunks))
    assert order[0] == first and order[-1] == last and set(order[1:-1]) == set(tools)
    nodes = {data[1]["langgraph_node"] for event, data, _ in stream if event == "messages"}
    assert nodes == {"model", "tool_node"}

    # Accumulated: the last partial of each model message is the message.
    partial = {}
    for event, data, _ in stream:
        if event == "messages/partial":
            partial[data[0]["id"]] = data[0]
    assert partial[last]["content"] == stored[-1]["content"]
    assert partial[first]["tool_calls"] == stored[1]["tool_calls"]

    # Updates: the model, five tools, the model; the values after them are those that were stored.
    updates = [node for event, data, _ in stream if event == "updates" for node in data]
    assert updates == ["model"] + 5 * ["tool_node"] + ["model"]
    values = [data for event, data, _ in stream if event == "values"]
    assert [len(each["messages"]) for each in values] == [1, 2, 7, 8]
    assert values[-1]["messages"] == stored


@pytest.mark.parametrize(
    "given", [{"messages": [{"role": "user", "content": "hi"}]}, {"messages": "hi"}, {"messages": ["hi"]},
              {"messages": [{"type": "human", "content": "hi"}]}, {"input": "hi"}, "hi",
              {"messages": [["user", "hi"]], "unknown": 1}],
)  # fmt: skip
def test_input_has_many_forms(heddle, mock, given):
    model = mock()
    values = heddle().wait("agent", given, configurable=model.configurable())
    assert [(m["type"], m["content"]) for m in values["messages"]] == [("human", "hi"), ("ai", "You said: hi")]
    assert all(message["id"] for message in values["messages"]) and "input" not in values


def test_a_conversation_continues(heddle, mock):
    model, server = mock(), heddle()
    thread = server.thread()
    server.wait("agent", human("one"), thread=thread, configurable=model.configurable())
    values = server.wait("agent", "two", thread=thread, configurable=model.configurable())
    assert kinds(values["messages"]) == ["human", "ai", "human", "ai"]
    assert [m["content"] for m in model.requests()[1]["body"]["messages"][1:]] == ["one", "You said: one", "two"]


def test_the_configuration_of_an_assistant_applies(heddle, mock):
    model, server = mock(), heddle()
    configurable = model.configurable(system_prompt="Be brief.", temperature=0.1, max_tokens=77)
    del configurable["custom_api_key"]  # keys are not stored
    body = {"graph_id": "agent", "name": "mine", "config": {"configurable": configurable}}
    assistant = server.ask("POST", "/assistants", json=body)["assistant_id"]
    server.wait(assistant, human("hi"))
    server.wait(assistant, human("hi"), configurable={"temperature": 1.5})
    first, second = (entry["body"] for entry in model.requests())
    assert first["messages"][0]["content"].startswith("Be brief.") and "Markdown" in first["messages"][0]["content"]
    assert (first["temperature"], first["max_tokens"], first["model"]) == (0.1, 77, "mock")
    assert (second["temperature"], second["max_tokens"]) == (1.5, 77)


def test_the_schemas_name_the_fields(heddle):
    schemas = heddle().ask("GET", "/assistants/agent/schemas")
    fields = schemas["config_schema"]["properties"]
    assert fields["temperature"] | {"description": ""} == {
        "title": "Temperature", "type": "number", "default": 0.7, "minimum": 0, "maximum": 2, "description": "",
    }  # fmt: skip
    for name in ("model_name", "max_tokens", "system_prompt", "base_url", "custom_model_name", "custom_api_key",
                 "apiKeys", "mcp_config", "rag", "rag_config", "approval"):  # fmt: skip
        assert {"title", "type", "default", "description"} <= set(fields[name]), name
    # CopilotKit's adapter sends only members that the schemas name.
    for schema in ("input_schema", "output_schema"):
        assert {"messages", "tools", "copilotkit", "ag-ui"} <= set(schemas[schema]["properties"])


def test_without_a_model_the_offline_model_answers(heddle):
    answer = heddle().wait("agent", human("hello"))["messages"][-1]
    assert answer["type"] == "ai" and "offline" in answer["content"]


def test_a_model_of_the_environment(heddle, mock):
    model = mock({"key": "sk-env", "rules": [{"content": "from {{model}}"}]})
    server = heddle(env={"OPENAI_BASE_URL": model.base_url, "OPENAI_API_KEY": "sk-env"})
    assert server.wait("agent", human("hi"))["messages"][-1]["content"] == "from gpt-4o"
    values = server.wait("agent", human("hi"), configurable={"model_name": "openai:small"})
    assert values["messages"][-1]["content"] == "from small"
    assert b"sk-env" not in server.database()


def test_the_context_of_the_application_reaches_the_model(heddle, mock):
    model = mock()
    context = {"context": [{"description": "the open file", "value": "notes.txt"}]}
    heddle().wait("agent", human("hi") | {"ag-ui": context}, configurable=model.configurable())
    assert "(the open file): notes.txt" in model.requests()[0]["body"]["messages"][0]["content"]


def test_the_shipped_graphs_are_served(heddle):
    found = heddle().ask("POST", "/assistants/search", json={})
    assert sorted(entry["graph_id"] for entry in found) == ["agent", "demo", "research_agent"]
