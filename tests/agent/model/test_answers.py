"""Model messages in every stream mode and in the state, with every provider."""

import json

import pytest
from langgraph_sdk import get_sync_client

GRAPH = {
    "name": "chat",
    "state": {"messages": {"reducer": "messages"}},
    "nodes": {
        "model": {
            "kind": "model",
            "defaults": {"model_name": "openai:gpt-4o", "temperature": 0.7, "system_prompt": "Be brief."},
            "suffix": " Always.",
        }
    },
    "edges": [["__start__", "model"], ["model", "__end__"]],
}
HI = {"messages": [{"role": "user", "content": "Good morning to all of you"}]}
SCRIPT = {"rules": [{"when": {"contains": "morning"}, "content": "The same to you, my friend."}]}
PROVIDERS = {
    "openai": ("openai:mock", "OPENAI", "/v1"),
    "anthropic": ("anthropic:mock", "ANTHROPIC", ""),
    "google": ("google:mock", "GOOGLE", ""),
}


def environment(provider: str, url: str) -> dict:
    _, name, path = PROVIDERS[provider]
    return {f"{name}_API_KEY": "sk-of-the-environment", f"{name}_BASE_URL": url + path}


def without_streaming(graph: dict) -> dict:
    return {**graph, "nodes": {"model": {**graph["nodes"]["model"], "stream": False}}}


@pytest.mark.parametrize("provider", PROVIDERS)
@pytest.mark.parametrize("streams", [True, False])
def test_the_same_message_in_every_mode(heddle, mock, provider, streams):
    model = mock(SCRIPT)
    graph = GRAPH if streams else without_streaming(GRAPH)
    server = heddle(graphs={"chat": graph}, env=environment(provider, model.url))
    thread = server.thread()
    events = server.stream(
        "chat",
        HI,
        thread,
        {"model_name": PROVIDERS[provider][0]},
        stream_mode=["messages-tuple", "updates", "values", "events"],
    )

    said = server.state(thread)["values"]["messages"][-1]
    assert said["content"] == "The same to you, my friend."
    assert said["id"].startswith("lc_run--")
    assert said["response_metadata"]["model_provider"] == provider
    assert {"model_name", "finish_reason"} <= said["response_metadata"].keys()
    usage = said["usage_metadata"]
    assert usage["total_tokens"] == usage["input_tokens"] + usage["output_tokens"] > 0

    pieces = [data[0] for event, data, _ in events if event == "messages" and data[0]["type"] != "human"]
    assert "".join(piece["content"] for piece in pieces) == said["content"]
    assert {piece["id"] for piece in pieces} == {said["id"]}
    if streams:
        assert len(pieces) > 2
        assert [piece["chunk_position"] for piece in pieces[-2:]] == [None, "last"]
        assert pieces[-1]["usage_metadata"] == usage
        assert pieces[-1]["response_metadata"] == said["response_metadata"]
    updates = [data for event, data, _ in events if event == "updates"]
    assert [update["model"]["messages"][0]["id"] for update in updates] == [said["id"]]
    assert [data for event, data, _ in events if event == "values"][-1]["messages"][-1] == said
    names = [data["event"] for event, data, _ in events if event == "events"]
    assert names.count("on_chat_model_start") == names.count("on_chat_model_end") == 1
    assert names.count("on_chat_model_stream") == (len(pieces) if streams else 0)


def test_the_mode_messages_sends_growing_messages(heddle, mock):
    model = mock({"delay_ms": 1, **SCRIPT})
    server = heddle(graphs={"chat": GRAPH})
    events = server.stream("chat", HI, configurable=model.configurable(), stream_mode=["messages"])

    partial = [data[0]["content"] for event, data, _ in events if event == "messages/partial"]
    assert all(after.startswith(before) for before, after in zip(partial, partial[1:]))
    complete = [data[0] for event, data, _ in events if event == "messages/complete" and data[0]["type"] == "ai"]
    assert [message["content"] for message in complete] == ["The same to you, my friend."] == partial[-1:]


def test_the_python_sdk_sees_tokens_and_the_state(heddle, mock):
    model = mock(SCRIPT)
    server = heddle(graphs={"chat": GRAPH})
    with get_sync_client(url=server.url) as client:
        thread = client.threads.create()["thread_id"]
        config = {"configurable": model.configurable()}
        parts = list(client.runs.stream(thread, "chat", input=HI, config=config, stream_mode="messages-tuple"))
        said = client.threads.get_state(thread)["values"]["messages"][-1]
    pieces = [part.data[0] for part in parts if part.event == "messages" and part.data[0]["type"] == "AIMessageChunk"]
    assert "".join(piece["content"] for piece in pieces) == said["content"]
    assert {piece["id"] for piece in pieces} == {said["id"]}


def test_the_request_to_the_provider(heddle, mock):
    model = mock(SCRIPT)
    server = heddle(graphs={"chat": GRAPH}, env={"OPENAI_API_KEY": "sk-of-the-environment"})
    more = {"max_tokens": "99.6", "temperature": 0, "x-org-id": "org-1", "x-user-tier": "gold"}
    server.wait("chat", HI, configurable=model.configurable(**more))

    (request,) = model.requests("/v1/chat/completions")
    body = request["body"]
    assert body["messages"][0] == {"role": "system", "content": "Be brief. Always."}
    assert (body["model"], body["max_tokens"], body["temperature"]) == ("mock", 100, 0)
    assert body["stream"] is True and body["stream_options"] == {"include_usage": True}
    headers = {name.lower(): value for name, value in request["headers"].items()}
    assert headers["x-sr-org-id"] == "org-1"
    assert headers["x-sr-user-tier"] == "gold"
    assert headers["x-sr-graph-id"] == "chat"


def test_a_key_of_the_environment_stays_at_home(heddle, scripted):
    def handler(peer, request):
        assert "sk-of-the-environment" not in json.dumps(request.headers)
        peer.answer(200, {"choices": [{"message": {"content": "ok"}, "finish_reason": "stop"}]})

    other = scripted(handler)
    server = heddle(graphs={"chat": GRAPH}, env={"OPENAI_API_KEY": "sk-of-the-environment"})
    values = server.wait("chat", HI, configurable={"base_url": other.url, "custom_model_name": "m"})
    assert values["messages"][-1]["content"] == "ok"
    assert other.requests[0].headers["authorization"] == "Bearer EMPTY"


def test_keys_are_never_stored(heddle, scripted):
    key = "sk-secret-0123456789abcdef"

    def handler(peer, request):
        assert request.headers["authorization"] == f"Bearer {key}"
        if request.number == 0:
            peer.answer(200, {"choices": [{"message": {"content": "ok"}, "finish_reason": "stop"}]})
        else:
            peer.answer(401, {"error": {"message": f"Incorrect API key provided: {key}"}})

    other = scripted(handler)
    server = heddle(graphs={"chat": GRAPH})
    thread = server.thread()
    settings = {"base_url": other.url, "custom_model_name": "m", "custom_api_key": key}
    first = server.stream("chat", HI, thread, settings, stream_mode=["values", "debug", "events"])
    second = server.stream("chat", HI, thread, settings, stream_mode=["values", "debug", "events"])
    assert "ok" in json.dumps(first)
    assert "Incorrect API key provided: ***" in json.dumps(second)
    assert key not in json.dumps([first, second, server.ask("POST", f"/threads/{thread}/history", json={})])
    assert key.encode() not in server.database()


def test_without_a_model_the_offline_one_answers(heddle):
    server = heddle(graphs={"chat": GRAPH})
    said = server.wait("chat", {"messages": [{"role": "user", "content": "hello"}]})["messages"][-1]
    assert "offline model" in said["content"]
    assert said["response_metadata"]["model_provider"] == "offline"
    echo = server.wait("chat", {"messages": [{"role": "user", "content": "Tell me"}]})["messages"][-1]
    assert echo["content"].startswith("You said: Tell me.")
    failed = server.wait("chat", {"messages": [{"role": "user", "content": "please fail"}]})
    assert failed["__error__"]["error"] == "RuntimeError"


def test_a_model_without_a_key_is_an_error(heddle):
    server = heddle(graphs={"chat": GRAPH})
    error = server.wait("chat", HI, configurable={"model_name": "anthropic:claude"})["__error__"]
    assert error["error"] == "AuthenticationError"
    assert "ANTHROPIC_API_KEY" in error["message"]


def test_images_pass_through(heddle, mock):
    model = mock({"rules": [{"content": "Nice."}]})
    server = heddle(graphs={"chat": GRAPH})
    content = [
        {"type": "text", "text": "What is this?"},
        {"type": "image", "source_type": "base64", "data": "QUJD", "mime_type": "image/png"},
        {"type": "image_url", "image_url": {"url": "https://example.org/a.png"}},
    ]
    server.wait("chat", {"messages": [{"role": "user", "content": content}]}, configurable=model.configurable())
    sent = model.requests("/v1/chat/completions")[0]["body"]["messages"][-1]["content"]
    assert sent[1] == {"type": "image_url", "image_url": {"url": "data:image/png;base64,QUJD"}}
    assert sent[2] == {"type": "image_url", "image_url": {"url": "https://example.org/a.png"}}


def test_an_update_instead_of_a_channel(heddle, mock):
    graph = {
        "name": "sum",
        "state": {"question": {}, "answer": {}},
        "nodes": {
            "model": {
                "kind": "model",
                "prompt": "Answer {{question}}",
                "messages": [{"@human": "{{question}}"}],
                "update": {"answer": "{{message.content}}"},
            }
        },
        "edges": [["__start__", "model"], ["model", "__end__"]],
    }
    model = mock({"rules": [{"when": {"system": "Answer morning?"}, "content": "Yes."}]})
    server = heddle(graphs={"sum": graph})
    values = server.wait("sum", {"question": "morning?"}, configurable=model.configurable())
    assert values == {"question": "morning?", "answer": "Yes."}


def test_reasoning_is_beside_the_content(heddle, mock):
    model = mock({"rules": [{"content": "Four.", "reasoning": "Two and two."}]})
    server = heddle(graphs={"chat": GRAPH})
    thread = server.thread()
    events = server.stream("chat", HI, thread, model.configurable(), stream_mode=["messages-tuple"])
    pieces = [data[0] for event, data, _ in events if event == "messages" and data[0]["type"] != "human"]
    thoughts = "".join(piece["additional_kwargs"].get("reasoning_content", "") for piece in pieces)
    said = server.state(thread)["values"]["messages"][-1]
    assert thoughts == said["additional_kwargs"]["reasoning_content"] == "Two and two."
    assert said["content"] == "Four."
