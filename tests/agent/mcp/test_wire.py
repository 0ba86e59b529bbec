"""Scripted MCP servers: tokens, redirects, both forms of the protocol, streams, invalid messages."""

from __future__ import annotations

import json
from urllib.parse import parse_qs

import pytest
from mcp_calls import call, graph, results
from programs import wait_for

ECHO = {"name": "echo", "description": "Says it again", "inputSchema": {"type": "object", "properties": {}}}
GO = {"messages": [{"role": "user", "content": "go"}]}


def text_result(text: str) -> dict:
    return {"content": [{"type": "text", "text": text}]}


class Legacy:
    """A handler that opens sessions; `tools` maps names to a function (peer, request), or to a
    text."""

    def __init__(self, tools: dict, list_page=None):
        self.tools, self.list_page = tools, list_page
        self.sessions = 0

    def __call__(self, peer, request) -> None:
        if request.method == "DELETE" or (request.method == "POST" and not {"id", "method"} <= set(request.json)):
            peer.answer(202)
        elif request.method == "GET":
            self.get(peer, request)
        else:
            getattr(self, request.json["method"].replace("/", "_"))(peer, request)

    def get(self, peer, request) -> None:
        peer.answer(405)

    def reply(self, peer, request, result: dict, headers: dict | None = None) -> None:
        peer.answer(200, {"jsonrpc": "2.0", "id": request.json["id"], "result": result}, headers)

    def initialize(self, peer, request) -> None:
        self.sessions += 1
        result = {
            "protocolVersion": "2025-06-18",
            "capabilities": {"tools": {}},
            "serverInfo": {"name": "s", "version": "1"},
        }
        self.reply(peer, request, result, {"Mcp-Session-Id": f"session-{self.sessions}"})

    def tools_list(self, peer, request) -> None:
        if self.list_page:
            self.reply(peer, request, self.list_page(request.json.get("params", {}).get("cursor")))
        else:
            self.reply(peer, request, {"tools": [{**ECHO, "name": name} for name in self.tools]})

    def tools_call(self, peer, request) -> None:
        act = self.tools[request.json["params"]["name"]]
        if callable(act):
            act(peer, request)
        else:
            self.reply(peer, request, text_result(act))


def posts(server, method: str) -> list:
    return [request for request in server.requests if request.method == "POST" and request.path == "/mcp"
            and request.json.get("method") == method]  # fmt: skip


def problems(events: list) -> list[str]:
    return [data["message"] for event, data, _ in events if event == "custom" and data["type"] == "tool_source_problem"]


def last_values(events: list) -> dict:
    return [data for event, data, _ in events if event == "values"][-1]


# ---- credentials


class Guarded(Legacy):
    """Requires a token that it issues in exchange for the user's."""

    def __init__(self, own: str):
        super().__init__({f"of_{own}": own})
        self.own, self.exchanges = own, []

    def __call__(self, peer, request) -> None:
        if request.path == "/oauth/token":
            self.exchanges.append({key: values[0] for key, values in parse_qs(request.body.decode()).items()})
            peer.answer(200, {"access_token": f"token-of-{self.own}", "token_type": "Bearer", "expires_in": 3600})
        elif request.headers.get("authorization") != f"Bearer token-of-{self.own}":
            peer.answer(401)
        else:
            super().__call__(peer, request)


def test_each_server_has_a_token_of_its_own(heddle, scripted):
    handlers = [Guarded("a"), Guarded("b")]
    peers = [scripted(handler) for handler in handlers]
    server = heddle(graphs={"caller": graph(call("of_a", "c1"), call("of_b", "c2"))})
    configurable = {
        "x-supabase-access-token": "user-token-4711",
        "mcp_config": {
            "servers": [{"name": name, "url": peer.url, "auth_required": True} for name, peer in zip("ab", peers)]
        },
    }
    for _ in range(2):
        found = results(server.wait("caller", GO, thread=server.thread(), configurable=configurable))
        assert [found[key]["content"] for key in ("c1", "c2")] == ["a", "b"]
    for handler, peer in zip(handlers, peers):
        assert handler.exchanges == [{
            "grant_type": "urn:ietf:params:oauth:grant-type:token-exchange",
            "client_id": "mcp_default",
            "subject_token": "user-token-4711",
            "subject_token_type": "urn:ietf:params:oauth:token-type:access_token",
            "resource": f"{peer.url}/mcp",
        }]  # fmt: skip
        sent = [request for request in peer.requests if request.path != "/oauth/token"]
        assert all("user-token-4711" not in json.dumps(request.headers) + request.body.decode() for request in sent)
    stored = server.database()
    assert b"user-token-4711" not in stored and b"token-of-" not in stored


def test_no_token_no_server(heddle, scripted):
    peer = scripted(Guarded("a"))
    server = heddle(graphs={"caller": graph(call("of_a"))})
    events = server.stream("caller", GO, stream_mode=["custom", "values"],
                           configurable={"mcp_config": {"url": peer.url, "auth_required": True}})  # fmt: skip
    assert ["token" in problem for problem in problems(events)] == [True]
    assert results(last_values(events))["c1"]["status"] == "error"
    assert peer.requests == []


def test_configured_credentials_are_sent_and_not_kept(heddle, scripted):
    peer = scripted(Legacy({"echo": "fine"}))
    server = heddle(graphs={"caller": graph(call("echo"))})
    configured = {
        "url": peer.url,
        "token": "tok-0815-abc",
        "headers": {"X-Api-Key": "key-0815-def"},
        "auth_required": True,
    }
    found = results(server.wait("caller", GO, thread=server.thread(), configurable={"mcp_config": configured}))
    assert found["c1"]["content"] == "fine"
    for request in peer.requests:
        assert request.headers["authorization"] == "Bearer tok-0815-abc"
        assert request.headers["x-api-key"] == "key-0815-def"
    stored = server.database()
    assert b"tok-0815-abc" not in stored and b"key-0815-def" not in stored


def test_credentials_follow_no_redirect(heddle, scripted):
    other = scripted(Legacy({"echo": "stolen"}))
    peer = scripted(lambda peer, request: peer.answer(307, headers={"Location": other.url + "/mcp"}))
    server = heddle(graphs={"caller": graph(call("echo"))})
    events = server.stream("caller", GO, stream_mode=["custom", "values"],
                           configurable={"mcp_config": {"url": peer.url, "token": "tok-0815-abc"}})  # fmt: skip
    assert len(problems(events)) == 1 and "tok-0815-abc" not in json.dumps(events)
    assert results(last_values(events))["c1"]["status"] == "error"
    assert other.requests == []


# ---- the form without sessions


def modern(peer, request) -> None:
    """Supports only 2026-07-28, elicits input before it acts, and requires its state back
    unchanged."""
    asked = request.json
    assert request.method == "POST" and "mcp-session-id" not in request.headers
    if asked["method"] == "initialize":
        error = {"code": -32022, "message": "Unsupported protocol version", "data": {"supported": ["2026-07-28"]}}
        peer.answer(400, {"jsonrpc": "2.0", "id": asked["id"], "error": error})
        return
    assert asked["params"]["_meta"]["io.modelcontextprotocol/protocolVersion"] == "2026-07-28"
    assert request.headers["mcp-protocol-version"] == "2026-07-28" and request.headers["mcp-method"] == asked["method"]
    result = {"resultType": "complete", "ttlMs": 60000, "cacheScope": "private"}
    if asked["method"] == "server/discover":
        result |= {"supportedVersions": ["2026-07-28"], "capabilities": {"tools": {}}}
    elif asked["method"] == "tools/list":
        schema = {"type": "object", "properties": {"to": {"type": "string", "x-mcp-header": "To"}}}
        bad = {"type": "object", "properties": {"to": {"type": "object", "x-mcp-header": "To"}}}
        result |= {"tools": [{"name": "send", "inputSchema": schema}, {"name": "bad", "inputSchema": bad}]}
    else:
        assert request.headers["mcp-name"] == "send" and request.headers["mcp-param-to"] == "=?base64?w4RkYQ==?="
        params = asked["params"]
        if "inputResponses" not in params:
            form = {
                "type": "object",
                "properties": {"sure": {"type": "boolean"}, "copies": {"type": "integer", "default": 2}},
            }
            asking = {"method": "elicitation/create", "params": {"message": "Sure?", "requestedSchema": form}}
            result = {
                "resultType": "input_required",
                "inputRequests": {"confirm": asking},
                "requestState": '{ "n": 1.0 }',
            }
        else:
            assert params["requestState"] == '{ "n": 1.0 }'
            result |= text_result(json.dumps(params["inputResponses"]))
    peer.answer(200, {"jsonrpc": "2.0", "id": asked["id"], "result": result})


def test_the_form_without_sessions(heddle, scripted):
    """The form is detected, not configured; the interrupt outlives the server."""
    peer = scripted(modern)
    server = heddle(graphs={"caller": graph(call("send", to="Äda"), call("bad", "c2"))})
    thread, configurable = server.thread(), {"mcp_config": {"name": "post", "url": peer.url}}
    values = server.wait("caller", GO, thread=thread, configurable=configurable)
    question = values["__interrupt__"][0]["value"]
    assert (question["type"], question["server"], question["tool"]) == ("mcp_input", "post", "send")
    assert question["message"] == "Sure?" and list(question["requests"]) == ["confirm"]
    server.kill()
    server.restart()
    values = server.wait("caller", thread=thread, configurable=configurable,
                         command={"resume": {"action": "accept", "content": {"sure": True}}})  # fmt: skip
    found = results(values)
    answer = {"confirm": {"action": "accept", "content": {"sure": True, "copies": 2}}}
    assert json.loads(found["c1"]["content"]) == answer
    assert found["c2"]["status"] == "error"
    ids = [request.json["id"] for request in posts(peer, "tools/call")]
    assert len(ids) == 2 and ids[0] != ids[1]


def test_a_server_configured_as_modern_may_be_legacy(heddle, scripted):
    class Old(Legacy):
        def server_discover(self, peer, request):
            peer.answer(400, "what?")

    peer = scripted(Old({"echo": "fine"}))
    server = heddle(graphs={"caller": graph(call("echo"))})
    configurable = {"mcp_config": {"url": peer.url, "protocol": "2026-07-28"}}
    for _ in range(2):
        assert results(server.wait("caller", GO, configurable=configurable))["c1"]["content"] == "fine"
    assert len(posts(peer, "server/discover")) == 1


# ---- streams


def test_a_stream_may_begin_with_other_messages(heddle, scripted):
    answered = []

    def act(peer, request) -> None:
        peer.begin_sse()
        peer.event({"jsonrpc": "2.0", "method": "notifications/message", "params": {"level": "info", "data": "…"}})
        peer.event({"jsonrpc": "2.0", "id": "p1", "method": "ping"})
        peer.event({"jsonrpc": "2.0", "id": "s1", "method": "sampling/createMessage", "params": {}})
        wait_for(lambda: len(answered) == 2, what="answers to what the server asked")
        peer.event({"jsonrpc": "2.0", "id": request.json["id"], "result": text_result("fine")})
        peer.end()

    class Talking(Legacy):
        def __call__(self, peer, request):
            if request.method == "POST" and "method" not in request.json:
                answered.append(request.json)
            super().__call__(peer, request)

    peer = scripted(Talking({"echo": act}))
    server = heddle(graphs={"caller": graph(call("echo"))})
    assert results(server.wait("caller", GO, configurable={"mcp_config": {"url": peer.url}}))["c1"]["content"] == "fine"
    answers = {answer["id"]: answer for answer in answered}
    assert answers["p1"]["result"] == {} and answers["s1"]["error"]["code"] == -32601


def test_a_stream_that_ends_early_is_taken_up_again(heddle, scripted):
    class Cutting(Legacy):
        asked = None
        resumed = []

        def act(self, peer, request):
            self.asked = request.json["id"]
            peer.begin_sse()
            peer.chunk("id: e1\nretry: 10\ndata: \n\n")
            peer.end()

        def get(self, peer, request):
            if "last-event-id" not in request.headers:
                return peer.answer(405)
            self.resumed.append(request.headers["last-event-id"])
            peer.begin_sse()
            if len(self.resumed) == 1:
                peer.chunk("id: e2\ndata: \n\n")
            else:
                peer.event({"jsonrpc": "2.0", "id": self.asked, "result": text_result("late")})
            peer.end()

    handler = Cutting({})
    handler.tools["echo"] = handler.act
    peer = scripted(handler)
    server = heddle(graphs={"caller": graph(call("echo"))})
    assert results(server.wait("caller", GO, configurable={"mcp_config": {"url": peer.url}}))["c1"]["content"] == "late"
    assert handler.resumed == ["e1", "e2"]
    assert len(posts(peer, "tools/call")) == 1


# ---- invalid messages


def test_nonsense_is_an_error_for_the_model(heddle, scripted):
    def say(status, body, **options):
        return lambda peer, request: peer.answer(status, body, **options)

    def cut(peer, request):
        peer.begin_sse()
        peer.chunk('data: {"jsonrpc":"2.0","id"')
        peer.reset()

    def error(code, data):
        def act(peer, request):
            peer.answer(
                200,
                {"jsonrpc": "2.0", "id": request.json["id"], "error": {"code": code, "message": "no", "data": data}},
            )

        return act

    tools = {
        "no_json": say(200, "{", content_type="application/json"),
        "other_id": say(200, {"jsonrpc": "2.0", "id": 99999, "result": text_result("x")}),
        "empty": say(200, ""),
        "broken": say(500, "oh"),
        "cut": cut,
        "reset": lambda peer, request: peer.reset(),
        "odd": lambda peer, request: peer.answer(
            200, {"jsonrpc": "2.0", "id": request.json["id"], "result": {"content": 3}}
        ),
        "login": error(-32003, {"url": "https://login.example/x", "message": {"text": "Log in"}}),
        "visit": error(
            -32042, {"elicitations": [{"mode": "url", "url": "https://visit.example/y", "message": "Go there"}]}
        ),
    }
    peer = scripted(Legacy(tools))
    server = heddle(graphs={"caller": graph(*(call(name, name) for name in tools))})
    values = server.wait("caller", GO, configurable={"mcp_config": {"url": peer.url}})
    found = results(values)
    assert {name: found[name]["status"] for name in tools} == dict.fromkeys(tools, "error")
    assert "https://login.example/x" in found["login"]["content"]
    assert "https://visit.example/y" in found["visit"]["content"]
    assert values["messages"][-1]["content"] == "done"


def test_pages_end(heddle, scripted):
    """Reading a list without an end stops at a limit."""

    def page(cursor):
        number = int(cursor or 0)
        return {"tools": [{**ECHO, "name": f"echo_{number}"}], "nextCursor": str(number + 1)}

    handler = Legacy({"echo_3": "three"}, list_page=page)
    peer = scripted(handler)
    server = heddle(graphs={"caller": graph(call("echo_3"))})
    assert (
        results(server.wait("caller", GO, configurable={"mcp_config": {"url": peer.url}}))["c1"]["content"] == "three"
    )
    assert 4 <= len(posts(peer, "tools/list")) <= 64


@pytest.mark.parametrize("version", ["2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"])
def test_versions(heddle, scripted, version):
    class Versioned(Legacy):
        def initialize(self, peer, request):
            assert request.json["params"]["protocolVersion"] == "2025-11-25"
            self.reply(
                peer,
                request,
                {"protocolVersion": version, "capabilities": {}, "serverInfo": {"name": "s", "version": "1"}},
            )

    peer = scripted(Versioned({"echo": "fine"}))
    server = heddle(graphs={"caller": graph(call("echo"))})
    assert results(server.wait("caller", GO, configurable={"mcp_config": {"url": peer.url}}))["c1"]["content"] == "fine"
    assert posts(peer, "tools/call")[0].headers["mcp-protocol-version"] == version
    assert "mcp-session-id" not in posts(peer, "tools/call")[0].headers
