"""`heddle mock-model` itself: three APIs, rules, delays, errors, and its record of requests."""

import json
import subprocess

import httpx
import pytest
from plain import events
from programs import binary, clean_environment, wait_for

TOOL = {"type": "object", "required": ["q", "n"], "properties": {"q": {"type": "string"}, "n": {"type": "integer"}}}


def chat(server, text, **more):
    body = {"model": "m", "messages": [{"role": "user", "content": text}], **more}
    return httpx.post(server.base_url + "/chat/completions", json=body, timeout=60)


def said(answer) -> str:
    return answer.json()["choices"][0]["message"]["content"]


def pieces(answer) -> list[dict]:
    """Returns the chunks of a stream, which must end with [DONE]."""
    lines = [line[6:] for line in answer.text.splitlines() if line.startswith("data: ")]
    assert lines[-1] == "[DONE]"
    return [json.loads(line) for line in lines[:-1]]


def text_of(chunks) -> list[str]:
    found = [choice["delta"].get("content") for chunk in chunks for choice in chunk["choices"]]
    return [text for text in found if text]


def test_it_repeats_its_input(mock):
    answer = chat(mock(), "hello there").json()
    assert answer["choices"][0] == {
        "index": 0, "message": {"role": "assistant", "content": "You said: hello there"}, "finish_reason": "stop",
    }  # fmt: skip
    assert answer["usage"] == {"prompt_tokens": 2, "completion_tokens": 4, "total_tokens": 6}


def test_a_stream_has_the_same_text_word_by_word_and_the_usage(mock):
    chunks = pieces(chat(mock(), "hello there", stream=True, stream_options={"include_usage": True}))
    assert text_of(chunks) == ["You ", "said: ", "hello ", "there"]
    assert chunks[-1]["usage"]["total_tokens"] == 6 and chunks[-1]["choices"] == []
    assert chunks[-2]["choices"][0]["finish_reason"] == "stop"
    assert len({chunk["id"] for chunk in chunks}) == 1


def test_it_calls_the_named_tools(mock):
    text = 'use a with {"x": "} {"} and use b with {bad\nuse nothing'
    calls = chat(mock(), text).json()["choices"][0]["message"]["tool_calls"]
    assert [(call["function"]["name"], call["function"]["arguments"]) for call in calls] == [
        ("a", '{"x": "} {"}'), ("b", "{bad"),
    ]  # fmt: skip
    assert len({call["id"] for call in calls}) == 2


def test_streamed_calls_are_the_same_calls(mock):
    chunks = pieces(chat(mock(), 'use a with {"x": [1, 2]} and use b with {}', stream=True))
    calls = {}
    for chunk in chunks:
        for part in chunk["choices"][0]["delta"].get("tool_calls", []):
            call = calls.setdefault(part["index"], {"arguments": ""})
            call["arguments"] += part["function"]["arguments"]
            call["name"] = part["function"].get("name", call.get("name"))
    assert calls == {0: {"name": "a", "arguments": '{"x": [1, 2]}'}, 1: {"name": "b", "arguments": "{}"}}
    assert chunks[-1]["choices"][0]["finish_reason"] == "tool_calls"


def test_five_tools_are_called_with_arguments_of_their_schemas(mock):
    tools = [{"type": "function", "function": {"name": name, "parameters": TOOL}} for name in ("one", "two")]
    calls = chat(mock(), "five tools", tools=tools).json()["choices"][0]["message"]["tool_calls"]
    assert [call["function"]["name"] for call in calls] == ["one", "two", "one", "two", "one"]
    assert json.loads(calls[0]["function"]["arguments"]) == {"q": "text", "n": 1}


@pytest.mark.parametrize("status", [400, 401, 429, 500, 503])
def test_it_fails_on_request(mock, status):
    answer = chat(mock(), f"fail with {status}", stream=True)
    assert answer.status_code == status
    assert answer.json()["error"]["message"]
    assert answer.headers.get("retry-after") == {429: "1", 503: "2"}.get(status)


def test_rules_look_at_the_request(mock):
    model = mock(
        {
            "rules": [
                {"when": {"model": "other"}, "content": "model"},
                {"when": {"call": 2}, "content": "call {{call}}"},
                {"when": {"system": ["be", "brief"]}, "content": "system"},
                {"when": {"tool": "lookup"}, "tool_calls": [{"name": "lookup", "id": "c1", "args": {"q": "{{user}}"}}]},
                {"when": {"role": "tool", "tool_results": 2}, "content": "two: {{results}}"},
                {"when": {"equals": "once"}, "times": 1, "content": "first"},
                {"when": {"contains": ["a", "b"], "tool_results": False}, "content": "a and b"},
            ]
        }
    )
    assert said(chat(model, "x", model="other")) == "model"
    assert said(chat(model, "x")) == "call 2"
    system = [{"role": "system", "content": "be very brief"}, {"role": "user", "content": "x"}]
    assert said(chat(model, "", messages=system)) == "system"
    offered = [{"type": "function", "function": {"name": "lookup"}}]
    call = chat(model, 'a "b"', tools=offered).json()["choices"][0]["message"]["tool_calls"][0]
    assert call["id"] == "c1" and json.loads(call["function"]["arguments"]) == {"q": 'a "b"'}
    results = [{"role": "user", "content": "x"}] + [
        {"role": "tool", "tool_call_id": name, "content": name} for name in ("r1", "r2")
    ]
    assert said(chat(model, "", messages=results)) == "two: r1, r2"
    assert said(chat(model, "once")) == "first"
    assert chat(model, "once").status_code == 404
    assert said(chat(model, "b a")) == "a and b"


@pytest.mark.parametrize(
    "cut,expected",
    [
        ("whole", ["a bc déf"]), ("word", ["a ", "bc ", "déf"]), ({"characters": 3}, ["a b", "c d", "éf"]),
        ({"chunks": 3}, ["a ", "bc ", "déf"]), ({"chunks": 99}, list("a bc déf")),
    ],
)  # fmt: skip
def test_streams_are_cut_as_scripted(mock, cut, expected):
    model = mock({"pieces": cut, "rules": [{"content": "a bc déf"}]})
    assert text_of(pieces(chat(model, "x", stream=True))) == expected


def test_a_connection_breaks_as_scripted(mock):
    model = mock({"rules": [{"content": "one two three", "cut": 2}]})
    got = b""
    with httpx.stream("POST", model.base_url + "/chat/completions", timeout=60, json={
        "model": "m", "stream": True, "messages": [{"role": "user", "content": "x"}],
    }) as answer:  # fmt: skip
        with pytest.raises(httpx.TransportError):
            for part in answer.iter_raw():
                got += part
    assert b'"two "' in got and b"three" not in got and b"DONE" not in got


def test_it_sees_a_client_leave(mock):
    model = mock({"rules": [{"when": {"contains": "hang"}, "hang": True}, {"content": "a b c", "delay_ms": 3600000}]})
    with pytest.raises(httpx.ReadTimeout):
        httpx.post(model.base_url + "/chat/completions", timeout=httpx.Timeout(60, read=0.5),
                   json={"model": "m", "messages": [{"role": "user", "content": "hang"}]})  # fmt: skip
    with httpx.stream("POST", model.base_url + "/chat/completions", timeout=60, json={
        "model": "m", "stream": True, "messages": [{"role": "user", "content": "x"}],
    }) as answer:  # fmt: skip
        next(answer.iter_raw())
    wait_for(lambda: all(entry["gone"] for entry in model.requests()), what="both clients to be seen leaving")
    assert [(entry["pieces"], entry["done"]) for entry in model.requests()] == [(0, False), (1, False)]


def test_keys_are_checked_and_never_shown(mock):
    model = mock({"key": "sk-right", "rules": [{"content": "yes"}]})
    url, body = model.base_url, {"model": "m", "messages": [{"role": "user", "content": "x"}]}
    for headers in ({"Authorization": "Bearer sk-wrong"}, {}):
        assert httpx.post(url + "/chat/completions", json=body, headers=headers, timeout=60).status_code == 401
    assert httpx.post(
        url + "/chat/completions", json=body, headers={"Authorization": "Bearer sk-right"}, timeout=60
    ).is_success
    assert httpx.post(url + "/messages", json=body, headers={"x-api-key": "sk-right"}, timeout=60).is_success
    shown = model.requests()
    assert [entry["headers"].get("authorization") for entry in shown] == ["present", None, "present", None]
    assert "sk-" not in json.dumps(shown)
    assert httpx.delete(model.url + "/mock/requests", timeout=60).status_code == 204
    assert model.requests() == []


def test_anthropics_form(mock):
    url = mock().base_url + "/messages"
    body = {
        "model": "c",
        "max_tokens": 9,
        "messages": [{"role": "user", "content": [{"type": "text", "text": "think"}]}],
    }
    whole = httpx.post(url, json=body, timeout=60).json()
    assert [block["type"] for block in whole["content"]] == ["thinking", "text"]
    assert whole["stop_reason"] == "end_turn" and whole["usage"]["input_tokens"] == 1
    stream = events(httpx.post(url, json={**body, "stream": True}, timeout=60).text)
    assert [name for name, _, _ in stream[:2]] == ["message_start", "content_block_start"]
    text = "".join(data["delta"].get("text", "") for name, data, _ in stream if name == "content_block_delta")
    assert text == whole["content"][1]["text"]
    assert [name for name, _, _ in stream[-2:]] == ["message_delta", "message_stop"]
    results = [{"type": "tool_result", "tool_use_id": "t", "content": "sunny"}]
    answer = httpx.post(
        url, json={**body, "messages": [*body["messages"], {"role": "user", "content": results}]}, timeout=60
    )
    assert answer.json()["content"][0]["text"] == "The tools said: sunny"
    calls = {**body, "stream": True, "messages": [{"role": "user", "content": 'use t with {"q": 1}'}]}
    stream = events(httpx.post(url, json=calls, timeout=60).text)
    parts = [data["delta"] for name, data, _ in stream if name == "content_block_delta"]
    assert "".join(part["partial_json"] for part in parts) == '{"q": 1}'
    assert httpx.post(url, json={**body, "messages": []}, timeout=60).json()["type"] == "error"


def test_geminis_form(mock):
    url = mock().url + "/v1beta/models/gem"
    body = {"contents": [{"role": "user", "parts": [{"text": "hello there"}]}]}
    whole = httpx.post(url + ":generateContent", json=body, timeout=60).json()
    assert whole["candidates"][0]["content"]["parts"] == [{"text": "You said: hello there"}]
    stream = [
        data for _, data, _ in events(httpx.post(url + ":streamGenerateContent?alt=sse", json=body, timeout=60).text)
    ]
    parts = [part["text"] for data in stream for part in data["candidates"][0]["content"]["parts"]]
    assert "".join(parts) == "You said: hello there" and len(parts) == 5
    assert stream[-1]["candidates"][0]["finishReason"] == "STOP" and stream[-1]["usageMetadata"]["totalTokenCount"] == 6
    body["contents"][0]["parts"][0]["text"] = 'use t with {"q": 1}'
    call = httpx.post(url + ":generateContent", json=body, timeout=60).json()["candidates"][0]["content"]["parts"][0]
    assert call == {"functionCall": {"name": "t", "args": {"q": 1}}}
    result = {"role": "user", "parts": [{"functionResponse": {"name": "t", "response": {"result": 3}}}]}
    body["contents"].append(result)
    answer = httpx.post(url + ":generateContent", json=body, timeout=60).json()
    assert answer["candidates"][0]["content"]["parts"][0]["text"] == 'The tools said: {"result":3}'


def test_similar_texts_have_similar_vectors(mock):
    url = mock().base_url + "/embeddings"
    texts = ["the river in spring", "a river flows in spring", "tax law for companies", "the river in spring"]
    data = httpx.post(url, json={"model": "e", "input": texts}, timeout=60).json()["data"]
    vectors = [entry["embedding"] for entry in data]
    near, far = (sum(a * b for a, b in zip(vectors[0], other)) for other in vectors[1:3])
    assert vectors[0] == vectors[3] and near > far
    one = httpx.post(url, json={"model": "e", "input": "the river in spring", "dimensions": 8}, timeout=60).json()[
        "data"
    ][0]
    assert len(one["embedding"]) == 8 and abs(sum(x * x for x in one["embedding"]) - 1) < 1e-3
    assert httpx.post(url, json={"model": "e", "input": 3}, timeout=60).status_code == 400


@pytest.mark.parametrize(
    "body", ["", "[]", '{"model": "m"}', '{"model": "m", "messages": [{}]}', '{"messages": []}', "\ud800"]
)
def test_wrong_requests_are_refused(mock, body):
    answer = httpx.post(
        mock().base_url + "/chat/completions", content=body.encode("utf-8", "surrogatepass"), timeout=60
    )
    assert answer.status_code == 400 and answer.json()["error"]["message"]


@pytest.mark.parametrize(
    "script,complaint",
    [
        ({}, "/rules: must be a list"), ({"rules": []}, "/rules: must be a list"), ({"rulez": []}, "/rulez: unknown member"),
        ({"rules": [{}]}, "/rules/0: needs one of"), ({"rules": [{"content": 3}]}, "/rules/0/content: must be a string"),
        ({"rules": [{"content": "x", "when": {"contain": "x"}}]}, "/rules/0/when/contain: unknown member"),
        ({"rules": [{"content": "x", "pieces": 0}]}, "/rules/0/pieces: must be"),
        ({"rules": [{"error": {"status": 200}}]}, "/rules/0/error/status: must be an integer from 400 to 599"),
        ({"rules": [{"tool_calls": [{"args": {}}]}]}, "/rules/0/tool_calls/name: is required"),
    ],
)  # fmt: skip
def test_a_wrong_script_is_refused_with_its_place(tmp_path, script, complaint):
    file = tmp_path / "script.json"
    file.write_text(json.dumps(script))
    done = subprocess.run([str(binary()), "mock-model", "--port", "0", str(file)], capture_output=True, text=True,
                          timeout=60, env=clean_environment())  # fmt: skip
    assert done.returncode == 1 and complaint in done.stderr
