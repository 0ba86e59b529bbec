"""The `tools` node on a server: HTTP tools, client tools, approval, time limits, cancelling,
secrets."""

from __future__ import annotations

import json
import threading

import pytest
from plain import human
from programs import wait_for

SECRET = "sk-very-secret-0123456789abcdef"


def graph(*sources: dict, **members) -> dict:
    """A model that makes the calls in the last human message, which is JSON; then it counts the
    results."""
    return {
        "name": "shop",
        "state": {"messages": {"reducer": "messages"}, "tools": {}, "policy": {}},
        "nodes": {
            "model": {
                "kind": "script",
                "replies": [
                    {"when": {"@eq": ["{{messages[-1].type}}", "tool"]}, "content": "I have asked."},
                    {"when": {"@not": {"@parse": "{{messages[-1].content}}"}}, "content": "Hello."},
                    {"content": "", "tool_calls": {"@parse": "{{messages[-1].content}}"}},
                ],
            },
            "act": {"kind": "tools", "sources": list(sources), **members},
        },
        "edges": [
            ["__start__", "model"],
            {
                "from": "model",
                "fanout": {
                    "over": "{{messages[-1].tool_calls}}", "as": "call", "to": "act",
                    "arg": {"call": "{{call}}", "tools": "{{tools}}", "policy": "{{policy}}"},
                },
            },
            ["act", "model"],
        ],
    }  # fmt: skip


def call(name: str, number: int = 1, **args) -> dict:
    return {"name": name, "args": args, "id": f"call-{number}"}


def say(*calls: dict) -> dict:
    return human(json.dumps(calls))


def answers(values: dict) -> dict[str, dict]:
    """Returns the tool messages by the id of their call."""
    return {m["tool_call_id"]: m for m in values["messages"] if m["type"] == "tool"}


def one(values: dict) -> dict:
    (message,) = answers(values).values()
    return message


def questions(values: dict) -> list[dict]:
    return values["__interrupt__"]


class Shop:
    """Echoes the request; with `crowd` only once that many requests wait."""

    def __init__(self, scripted, crowd: int = 1):
        self.barrier = threading.Barrier(crowd)
        self.server = scripted(self.handle)

    def handle(self, peer, request) -> None:
        self.barrier.wait(60)
        if request.path.startswith("/gone"):
            peer.answer(404, "no such thing" + "!" * 5000)
        elif request.path.startswith("/silent"):
            peer.wait_closed()
        else:
            said = {"method": request.method, "path": request.path, "body": request.body.decode()}
            peer.answer(200, said | {"key": request.headers.get("authorization")})

    @property
    def requests(self) -> list:
        return self.server.requests

    def tool(self, name: str, path: str, **more) -> dict:
        return {"name": name, "url": self.server.url + path, "description": name, **more}


BUY = {"type": "object", "properties": {"item": {"type": "string"}, "count": {"type": "integer"}}, "required": ["item"]}


# ---- calls ------------------------------------------------------------


def test_no_call(heddle, scripted):
    shop = Shop(scripted)
    server = heddle(graphs={"shop": graph({"http": [shop.tool("buy", "/buy")]})})
    values = server.wait("shop", human("hi"))
    assert [m["content"] for m in values["messages"]] == ["hi", "Hello."] and shop.requests == []


def test_one_call(heddle, scripted):
    shop = Shop(scripted)
    tool = shop.tool("buy", "/items/{item}", parameters=BUY, method="PUT", body=["count"])
    server = heddle(graphs={"shop": graph({"http": [tool]})})
    values = server.wait("shop", say(call("buy", item="a/b ä", count=2)))
    message = one(values)
    assert message["status"] == "success" and message["name"] == "buy" and message["id"]
    assert json.loads(message["content"]) == {
        "method": "PUT", "path": "/items/a%2Fb%20%C3%A4", "body": '{"count":2}', "key": None,
    }  # fmt: skip
    assert values["messages"][-1]["content"] == "I have asked."


def test_five_calls_at_once_have_their_own_answers(heddle, scripted):
    # The shop responds when five calls wait: sequential calls would block.
    shop = Shop(scripted, crowd=5)
    tool = shop.tool("buy", "/buy", parameters=BUY, result={"json": "path"})
    server = heddle(graphs={"shop": graph({"http": tool})})
    values = server.wait("shop", say(*(call("buy", n, item=f"i{n}") for n in range(5))))
    assert {i: m["content"] for i, m in answers(values).items()} == {
        f"call-{n}": f"/buy?item=i{n}" for n in range(5)
    }  # fmt: skip
    assert [m["tool_call_id"] for m in values["messages"] if m["type"] == "tool"] == [f"call-{n}" for n in range(5)]


def test_errors_are_reported_to_the_model(heddle, scripted):
    shop = Shop(scripted)
    down = {"name": "down", "url": "http://127.0.0.1:1/x"}
    tools = [shop.tool("buy", "/buy/{item}", parameters=BUY), shop.tool("gone", "/gone"), down]
    tools.append(shop.tool("silent", "/silent", timeout_ms=200))
    tools.append(shop.tool("text", "/buy/x", result={"json": "no.such"}))
    server = heddle(graphs={"shop": graph({"http": tools})})
    asked = [call("buy", 1), call("buy", 2, item=".."), call("gone", 3), call("down", 4), call("silent", 5),
             call("text", 6), call("bye", 7)]  # fmt: skip
    found = answers(server.wait("shop", say(*asked)))
    assert all(m["status"] == "error" for m in found.values()) and len(found) == 7
    texts = [found[f"call-{n}"]["content"] for n in range(1, 8)]
    assert texts[0].startswith('Error: invalid arguments for buy: "item" is required.')
    assert texts[1] == "Error: an argument must not be . or .. in a path"
    assert texts[2].startswith("Error: HTTP status 404: no such thing!!!") and len(texts[2]) < 2100
    assert texts[3].startswith("Error: ") and len(texts[3]) > 10
    assert texts[4] == "Error: silent timed out after 0.2 seconds."
    assert texts[5] == 'Error: the response has no "no.such"'
    assert texts[6] == "Error: bye is not a valid tool, try one of [buy, gone, down, silent, text]."


def test_large_results_are_cut(heddle, scripted):
    server_of_much = scripted(lambda peer, request: peer.answer(200, "ä" * 1000))
    tool = {"name": "much", "url": server_of_much.url}
    server = heddle(graphs={"shop": graph({"http": tool}, max_result_bytes=101)})
    assert one(server.wait("shop", say(call("much"))))["content"] == "ä" * 50 + "\n[1900 of 2000 bytes were left out]"


def test_a_failing_source_is_reported_and_the_others_work(heddle, scripted):
    shop = Shop(scripted)
    sources = [{"http": "{{config.more}}"}, {"http": shop.tool("buy", "/buy")}]
    server = heddle(graphs={"shop": graph(*sources)})
    stream = server.stream("shop", say(call("buy", 1), call("buy", 2)), configurable={"more": [{"name": "x"}]},
                           stream_mode=["custom", "values"])  # fmt: skip
    assert [data for event, data, _ in stream if event == "custom"] == [
        {"type": "tool_source_problem", "source": "http",
         "message": 'tool 0: "url" must begin with http:// or https://'},
    ]  # fmt: skip
    values = [data for event, data, _ in stream if event == "values"][-1]
    assert [m["status"] for m in answers(values).values()] == ["success", "success"]


def test_events_show_the_calls(heddle, scripted):
    shop = Shop(scripted)
    server = heddle(graphs={"shop": graph({"http": [shop.tool("buy", "/buy"), shop.tool("gone", "/gone")]})})
    stream = server.stream("shop", say(call("buy", 1, item="x"), call("gone", 2)), stream_mode=["events"])
    events = [data for event, data, _ in stream if event == "events" and data["event"].startswith("on_tool")]
    seen = {(e["event"], e["name"]): e["data"] for e in events}
    assert set(seen) == {("on_tool_start", "buy"), ("on_tool_end", "buy"), ("on_tool_start", "gone"),
                         ("on_tool_error", "gone")}  # fmt: skip
    assert seen["on_tool_start", "buy"]["input"] == {"item": "x"}
    assert seen["on_tool_end", "buy"]["output"]["tool_call_id"] == "call-1"


def test_a_cancel_closes_the_connection(heddle, scripted):
    shop = Shop(scripted)
    server = heddle(graphs={"shop": graph({"http": shop.tool("silent", "/silent")})})
    thread = server.thread()
    run = server.ask("POST", f"/threads/{thread}/runs", json={"assistant_id": "shop", "input": say(call("silent"))})
    wait_for(lambda: shop.requests, what="the call")
    server.ask("POST", f"/threads/{thread}/runs/{run['run_id']}/cancel?wait=true")
    shop.server.wait_closed()
    assert answers(server.state(thread)["values"]) == {}


# ---- secrets ----------------------------------------------------------


def test_secrets_go_only_to_their_server(heddle, scripted):
    shop = Shop(scripted)
    tool = shop.tool("buy", "/buy", headers={"Authorization": "Bearer {{config.apiKeys.SHOP}}"})
    server = heddle(graphs={"shop": graph({"http": tool})})
    thread = server.thread()
    stream = server.stream("shop", say(call("buy", item="heddle:secret:apiKeys.SHOP")), thread=thread,
                           configurable={"apiKeys": {"SHOP": SECRET}}, stream_mode=["values", "events", "debug"])  # fmt: skip
    (request,) = shop.requests
    assert request.headers["authorization"] == f"Bearer {SECRET}" and SECRET not in request.path
    # The shop echoes the key: it must not be visible anywhere.
    message = one(server.state(thread)["values"])
    assert message["status"] == "success" and "***" in message["content"]
    assert SECRET not in json.dumps(stream)
    server.stop()
    assert SECRET.encode() not in server.database() and SECRET not in server.log.read_text()


# ---- client tools -----------------------------------------------------


@pytest.mark.parametrize(
    "tool",
    [{"name": "confirm", "description": "d", "parameters": {"type": "object"}},
     {"name": "confirm", "description": "d", "parameters": '{"type": "object"}'},
     {"type": "function", "function": {"name": "confirm", "parameters": {}}},
     {"type": "function", "name": "confirm", "function": {"name": "confirm", "description": "d"}}],
)  # fmt: skip
def test_a_client_answers_its_own_calls(heddle, tool):
    server = heddle(graphs={"shop": graph({"client": "{{tools}}"})})
    thread = server.thread()
    values = server.wait("shop", say(call("confirm")) | {"tools": [tool]}, thread=thread)
    assert [m["type"] for m in values["messages"]] == ["human", "ai"] and "__interrupt__" not in values
    assert server.state(thread)["next"] == []
    answer = {"type": "tool", "content": "yes", "tool_call_id": "call-1"}
    values = server.wait("shop", {"messages": [answer]}, thread=thread)
    assert [m["type"] for m in values["messages"]] == ["human", "ai", "tool", "ai"]


# ---- approval ---------------------------------------------------------


def approved(shop: Shop) -> dict:
    return {"shop": graph({"http": shop.tool("buy", "/buy", parameters=BUY)}, approval="{{policy}}")}


def test_an_approved_call_runs_once_after_a_restart(heddle, scripted):
    shop = Shop(scripted)
    server = heddle(graphs=approved(shop))
    thread = server.thread()
    values = server.wait("shop", say(call("buy", item="x")) | {"policy": ["b*"]}, thread=thread)
    (question,) = questions(values)
    assert question["value"] == {
        "action_request": {"action": "buy", "args": {"item": "x"}},
        "config": {"allow_ignore": True, "allow_respond": True, "allow_edit": True, "allow_accept": True},
        "description": "The agent wants to call the tool `buy`.",
        "tool_call_id": "call-1",
        "action_requests": [
            {"name": "buy", "args": {"item": "x"}, "description": "The agent wants to call the tool `buy`."},
        ],
        "review_configs": [{"action_name": "buy", "allowed_decisions": ["approve", "edit", "reject"]}],
    }  # fmt: skip
    server.kill()
    server.restart()
    assert shop.requests == [] and server.state(thread)["next"] == ["act"]
    values = server.wait("shop", thread=thread, command={"resume": [{"type": "accept", "args": None}]})
    assert one(values)["status"] == "success" and len(shop.requests) == 1
    assert values["messages"][-1]["content"] == "I have asked."


@pytest.mark.parametrize(
    ("answer", "status", "content", "asked"),
    [({"type": "edit", "args": {"action": "buy", "args": {"item": "y"}}}, "success", '"path":"/buy?item=y"', 1),
     ({"decisions": [{"type": "edit", "edited_action": {"name": "buy", "args": {"item": "y"}}}]}, "success",
      '"path":"/buy?item=y"', 1),
     ([{"type": "response", "args": "ask Ann"}], "success", "ask Ann", 0),
     ({"type": "ignore"}, "error", "The user declined the call of buy. It was not executed.", 0),
     ({"decisions": [{"type": "reject", "message": "too dear"}]}, "error", "too dear", 0)],
)  # fmt: skip
def test_replies_of_a_human(heddle, scripted, answer, status, content, asked):
    shop = Shop(scripted)
    server = heddle(graphs=approved(shop))
    thread = server.thread()
    server.wait("shop", say(call("buy", item="x")) | {"policy": True}, thread=thread)
    message = one(server.wait("shop", thread=thread, command={"resume": answer}))
    assert message["status"] == status and content in message["content"].replace(": ", ":")
    assert len(shop.requests) == asked
    edited = message["additional_kwargs"].get("edited_args")
    assert edited == ({"item": "y"} if asked else None)
    # The model's own tool call is unchanged.
    calls = [m["tool_calls"] for m in server.state(thread)["values"]["messages"] if m["type"] == "ai"][0]
    assert calls[0]["args"] == {"item": "x"}


def test_an_invalid_reply_is_requested_again(heddle, scripted):
    shop = Shop(scripted)
    server = heddle(graphs=approved(shop))
    thread = server.thread()
    policy = [{"tool": "buy", "args": {"count": {"gt": 5}}, "allow": ["accept"], "description": "Many!"}]
    values = server.wait("shop", say(call("buy", 1, item="x", count=9), call("buy", 2, item="y", count=5))
                         | {"policy": policy}, thread=thread)  # fmt: skip
    (question,) = questions(values)
    assert question["value"]["description"] == "Many!" and len(shop.requests) == 1
    for answer, error in (("yes", "a reply is an object"), ({"type": "ignore"}, 'the reply "ignore" is not')):
        values = server.wait("shop", thread=thread, command={"resume": answer})
        (question,) = questions(values)
        assert question["value"]["error"].startswith(error)
    values = server.wait("shop", thread=thread, command={"resume": {"type": "accept"}})
    assert len(answers(values)) == 2 and len(shop.requests) == 2


def test_several_wait_at_once(heddle, scripted):
    shop = Shop(scripted)
    server = heddle(graphs=approved(shop))
    thread = server.thread()
    calls = [call("buy", n, item=f"i{n}") for n in range(3)]
    values = server.wait("shop", say(*calls) | {"policy": True}, thread=thread)
    ids = {q["value"]["tool_call_id"]: q["id"] for q in questions(values)}
    assert sorted(ids) == ["call-0", "call-1", "call-2"] and len(set(ids.values())) == 3
    values = server.wait("shop", thread=thread, command={"resume": {ids["call-1"]: {"type": "accept"}}})
    assert len(questions(values)) == 2 and [r.path for r in shop.requests] == ["/buy?item=i1"]
    server.stop()
    server.restart()
    resume = {ids["call-0"]: {"type": "ignore"}, ids["call-2"]: {"type": "response", "args": "later"}}
    values = server.wait("shop", thread=thread, command={"resume": resume})
    found = answers(values)
    assert [found[f"call-{n}"]["status"] for n in range(3)] == ["error", "success", "success"]
    assert found["call-2"]["content"] == "later" and len(shop.requests) == 1
    assert values["messages"][-1]["content"] == "I have asked."


def test_a_delegate_has_its_own_approval(heddle, scripted):
    # Two similar interrupts: whether to call the clerk, and whether the clerk may buy.
    shop = Shop(scripted)
    clerk = graph({"http": shop.tool("buy", "/buy", parameters=BUY)}, approval=True) | {"name": "clerk"}
    boss = graph({"assistants": ["clerk"]}, approval="{{policy}}") | {"name": "boss"}
    server = heddle(graphs={"boss": boss, "clerk": clerk})
    for policy in (True, False):
        thread = server.thread()
        order = say(call("clerk", message=json.dumps([call("buy", item="x")])))
        values = server.wait("boss", order | {"policy": policy}, thread=thread)
        if policy:
            assert questions(values)[0]["value"]["action_request"]["action"] == "clerk"
            values = server.wait("boss", thread=thread, command={"resume": {"type": "accept"}})
        assert questions(values)[0]["value"]["action_request"] == {"action": "buy", "args": {"item": "x"}}
        server.kill()
        server.restart()
        before = len(shop.requests)
        values = server.wait("boss", thread=thread, command={"resume": {"type": "accept"}})
        assert one(values)["content"] == "I have asked." and len(shop.requests) == before + 1
