"""Tool calls of a model: streamed, invalid, without a result, with results in several runs."""

import json

GRAPH = {
    "name": "react",
    "state": {"messages": {"reducer": "messages"}, "tools": {"reducer": "last"}},
    "nodes": {
        "model": {"kind": "model", "tools": "act"},
        "act": {"kind": "tools", "sources": [{"client": "{{tools}}"}]},
    },
    "edges": [
        ["__start__", "model"],
        {
            "from": "model",
            "fanout": {
                "over": "{{messages[-1].tool_calls}}",
                "as": "call",
                "to": "act",
                "arg": {"call": "{{call}}", "tools": "{{tools}}"},
            },
        },
        ["act", "model"],
    ],
}
TOOLS = [
    {
        "name": "ask_user",
        "description": "Asks the user.",
        "parameters": {"type": "object", "properties": {"question": {"type": "string"}}},
    }
]


def call(id: str, args='{"question": "Why?"}', index: int = 0) -> dict:
    return {"index": index, "id": id, "type": "function", "function": {"name": "ask_user", "arguments": args}}


def say(peer, *deltas, finish="stop") -> None:
    peer.begin_sse()
    for delta in deltas:
        peer.event({"model": "m", "choices": [{"index": 0, "delta": delta}]})
    peer.event({"choices": [{"index": 0, "delta": {}, "finish_reason": finish}]})
    peer.event("[DONE]")
    peer.end()


def human(text: str) -> dict:
    return {"role": "user", "content": text}


def start(heddle, scripted, *answers):
    """Returns a server, the settings of a model that sends these responses in turn, and the model."""
    model = scripted(lambda peer, request: say(peer, *answers[request.number]))
    return heddle(graphs={"react": GRAPH}), {"base_url": model.url, "custom_model_name": "m"}, model


def shapes(messages) -> list:
    return [(m["type"], m["content"], [c["id"] for c in m.get("tool_calls") or []]) for m in messages]


def test_calls_are_streamed_and_offered_tools_sent(heddle, scripted):
    pieces = [{"tool_calls": [call("c1", "")]}] + [
        {"tool_calls": [{"index": 0, "function": {"arguments": part}}]} for part in ('{"ques', 'tion": "W', 'hy?"}')
    ]
    server, settings, model = start(heddle, scripted, pieces)
    thread = server.thread()
    events = server.stream(
        "react", {"messages": [human("Go")], "tools": TOOLS}, thread, settings, stream_mode=["messages-tuple"]
    )
    sent = model.requests[0].json["tools"]
    assert sent[0]["function"]["name"] == "ask_user"
    assert sent[0]["function"]["parameters"]["properties"] == {"question": {"type": "string"}}
    chunks = [c for event, data, _ in events if event == "messages" for c in data[0].get("tool_call_chunks") or []]
    assert "".join(chunk["args"] for chunk in chunks) == '{"question": "Why?"}'
    assert [chunk["id"] for chunk in chunks] == ["c1", None, None, None]
    said = server.state(thread)["values"]["messages"][-1]
    assert said["tool_calls"] == [{"name": "ask_user", "args": {"question": "Why?"}, "id": "c1", "type": "tool_call"}]
    assert server.state(thread)["next"] == []
    assert len(model.requests) == 1


def test_answers_may_come_in_pieces(heddle, scripted):
    both = [{"tool_calls": [call("c1"), call("c2", index=1)]}]
    server, settings, model = start(heddle, scripted, both, [{"content": "Thanks."}])
    thread = server.thread()
    server.wait("react", {"messages": [human("Go")], "tools": TOOLS}, thread, settings)
    one = {"messages": [{"role": "tool", "tool_call_id": "c2", "content": "two"}], "tools": TOOLS}
    server.wait("react", one, thread, settings)
    assert len(model.requests) == 1
    other = {"messages": [{"role": "tool", "tool_call_id": "c1", "content": "one"}], "tools": TOOLS}
    values = server.wait("react", other, thread, settings)
    assert values["messages"][-1]["content"] == "Thanks."
    # In the order of the calls, as providers require it.
    sent = [(m["role"], m.get("tool_call_id")) for m in model.requests[1].json["messages"]]
    assert sent == [("user", None), ("assistant", None), ("tool", "c1"), ("tool", "c2")]


def test_a_human_may_continue_without_an_answer(heddle, scripted):
    server, settings, model = start(heddle, scripted, [{"tool_calls": [call("c1")]}], [{"content": "All right."}])
    thread = server.thread()
    server.wait("react", {"messages": [human("Go")], "tools": TOOLS}, thread, settings)
    values = server.wait("react", {"messages": [human("Never mind")], "tools": TOOLS}, thread, settings)
    assert shapes(values["messages"]) == [
        ("human", "Go", []),
        ("ai", "", ["c1"]),
        ("human", "Never mind", []),
        ("ai", "All right.", []),
    ]
    sent = model.requests[1].json["messages"]
    assert [m["role"] for m in sent] == ["user", "assistant", "tool", "user"]
    assert "No result" in sent[2]["content"]


def test_arguments_that_are_not_json_are_reported_to_the_model(heddle, scripted):
    server, settings, model = start(
        heddle, scripted, [{"tool_calls": [call("c1", '{"question": ')]}], [{"content": "Sorry."}]
    )
    thread = server.thread()
    values = server.wait("react", {"messages": [human("Go")], "tools": TOOLS}, thread, settings)
    assert [m["type"] for m in values["messages"]] == ["human", "ai", "tool", "ai"]
    wrong, told = values["messages"][1:3]
    assert wrong["tool_calls"] == [] and wrong["invalid_tool_calls"][0]["args"] == '{"question": '
    assert (told["status"], told["tool_call_id"]) == ("error", "c1")
    sent = model.requests[1].json["messages"]
    assert sent[1]["tool_calls"][0]["function"]["arguments"] == '{"question": '
    assert (sent[2]["role"], sent[2]["tool_call_id"]) == ("tool", "c1")
    assert json.dumps(sent).count("not a JSON object") == 1


def test_a_wrong_call_beside_a_right_one(heddle, scripted):
    both = [{"tool_calls": [call("c1", "{"), call("c2", index=1)]}]
    server, settings, model = start(heddle, scripted, both, [{"content": "Fine."}])
    thread = server.thread()
    server.wait("react", {"messages": [human("Go")], "tools": TOOLS}, thread, settings)
    answer = {"messages": [{"role": "tool", "tool_call_id": "c2", "content": "two"}], "tools": TOOLS}
    values = server.wait("react", answer, thread, settings)
    assert [m.get("tool_call_id") for m in values["messages"]] == [None, None, "c2", "c1", None]
    sent = model.requests[1].json["messages"]
    assert [call["id"] for call in sent[1]["tool_calls"]] == ["c2", "c1"]
    assert [m.get("tool_call_id") for m in sent] == [None, None, "c2", "c1"]
