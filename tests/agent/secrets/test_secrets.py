"""Secrets stay in memory: they are not in the database, a response, a stream or the log."""

from __future__ import annotations

import pytest
from kept import stored
from programs import wait_for

# Every secret contains this text, and nothing else does. It is long because stored values have many
# bytes that look random.
MARK = "zqxjwvkpfgzq"
JWT = f"eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiJ6cXhqIn0.{MARK}signature"
CANARY = "canary-that-must-be-found"
SECRETS = {
    "custom_api_key": f"{MARK}-custom",
    "apiKeys": {"OPENAI_API_KEY": f"{MARK}-openai", "ANTHROPIC_API_KEY": f"{MARK}-anthropic"},
    "mcp_config": {
        "servers": [
            {"url": "http://127.0.0.1:9/mcp", "headers": {"Authorization": f"Bearer {MARK}-header"}, "name": CANARY},
            {"url": f"http://user:{MARK}@127.0.0.1:9/mcp"},
        ]
    },
    "langgraph_auth_user": {"identity": "somebody", "token": f"{MARK}-identity"},
    "x-supabase-access-token": f"{MARK}-supabase",
    "clientSecret": f"{MARK}-client",
    "note": f"Bearer {MARK}-by-shape-0123",
    "jwt_by_shape": JWT,
    "list": [JWT, {"deep": [f"sk-proj-{MARK}0123456789"]}],
    "plain": CANARY,
    "max_tokens": 5,
}
# Puts everything that expressions can see where it is stored, streamed and shown.
LEAKY = {
    "name": "leaky",
    "state": {"messages": {"reducer": "messages"}, "seen": {}, "context": {}},
    "nodes": {
        "tell": {
            "kind": "set",
            "emit": [{"config": "{{config}}", "context": "{{context}}"}],
            "update": {"seen": "{{config}}", "context": "{{context}}"},
        },
        "say": {"kind": "script", "replies": [{"content": "the key is {{config.custom_api_key}}"}]},
        "ask": {"kind": "interrupt", "ask": [{"config": "{{config}}"}]},
        "break": {"kind": "fail", "error": {"type": "ValueError", "message": "with {{config.apiKeys.OPENAI_API_KEY}}"}},
    },
    "edges": [["__start__", "tell"], ["tell", "say"], ["say", "ask"], ["ask", "break"], ["break", "__end__"]],
}


def answers(server, thread: str) -> str:
    """Returns the responses of all endpoints."""
    texts = []
    with server.client() as client:

        def ask(method: str, path: str, **options):
            answer = client.request(method, path, **options)
            assert answer.status_code == 200, f"{method} {path}: {answer.text}"
            texts.append(answer.text)
            return answer

        for run in ask("GET", f"/threads/{thread}/runs").json():
            ask("GET", f"/threads/{thread}/runs/{run['run_id']}")
            ask("GET", f"/threads/{thread}/runs/{run['run_id']}/join")
            ask("GET", f"/threads/{thread}/runs/{run['run_id']}/stream", headers={"Last-Event-ID": "-1"})
        for path in ("", "/state", "/history", "/timeline", "/branches"):
            ask("GET", f"/threads/{thread}{path}")
        ask("GET", f"/threads/{thread}/state", params={"subgraphs": "true"})
        ask("POST", f"/threads/{thread}/history", json={"limit": 1000})
        for what in ("threads", "assistants", "runs/crons", "store/items"):
            ask("POST", f"/{what}/search", json={} if what != "store/items" else {"namespace_prefix": []})
        for path in ("/info", "/metrics", "/openapi.json"):
            ask("GET", path)
    return "\n".join(texts)


def send(server, thread: str, **body) -> str:
    """Runs once with secrets in all places; returns the stream as received."""
    body = {
        "assistant_id": "leaky",
        "config": {
            "configurable": SECRETS,
            "metadata": {"api_key": f"{MARK}-in-metadata", "trace": CANARY},
            "callback_token": f"{MARK}-beside",
        },
        "metadata": {"session": {"password": f"{MARK}-in-run-metadata"}},
        "context": {"token": f"{MARK}-in-context", "who": CANARY},
        "stream_mode": [
            "values",
            "updates",
            "messages",
            "messages-tuple",
            "events",
            "debug",
            "tasks",
            "checkpoints",
            "custom",
        ],
        "stream_subgraphs": True,
        "stream_resumable": True,
        **body,
    }
    headers = {
        "x-supabase-access-token": f"{MARK}-in-a-header",
        "x-api-key": f"{MARK}-key",
        "authorization": f"Bearer {MARK}",
    }
    with server.client(headers=headers) as client:
        answer = client.post(f"/threads/{thread}/runs/stream", json=body)
    assert answer.status_code == 200, answer.text
    return answer.text


def must_be_clean(where: str, text: str | bytes) -> None:
    data = text if isinstance(text, bytes) else text.encode()
    assert CANARY.encode() in data, f"{where}: nothing that was looked for would be found there"
    at = data.find(MARK.encode())
    assert at < 0, f"{where}: {data[max(0, at - 300) : at + 100]!r}"


@pytest.fixture
def server(heddle):
    return heddle(graphs={"leaky": LEAKY})


def test_nothing_is_kept_or_shown(server):
    thread = server.thread()
    streamed = send(server, thread, input={"messages": "hello"})
    must_be_clean("the first stream", streamed)
    assert "heddle:secret:custom_api_key" in streamed
    must_be_clean("the second stream", send(server, thread, command={"resume": "go on"}))
    must_be_clean("the answers", answers(server, thread))
    server.stop()
    log = server.log.read_bytes()
    assert MARK.encode() not in log, log[-2000:]
    assert MARK.encode() not in server.database()
    kept = stored(server)
    must_be_clean("the database", kept)
    # The search also covered compressed values.
    words = b"the key is heddle:secret:custom_api_key"
    assert words in kept and words not in server.database()


def test_a_stored_marker_has_no_meaning_later(server):
    thread = server.thread()
    send(server, thread, input={"messages": "hello"})
    # The thread keeps its configuration, but the client must send keys again.
    values = server.wait("leaky", {"messages": "again"}, thread=thread)
    seen = values["seen"]
    assert seen["custom_api_key"] is None and seen["apiKeys"]["OPENAI_API_KEY"] is None
    assert seen["plain"] == CANARY and seen["max_tokens"] == 5
    # A secret cannot be read by its name.
    values = server.wait(
        "leaky", {"messages": "again"}, thread=thread, configurable={"plain": "heddle:secret:custom_api_key"}
    )
    assert values["seen"]["plain"] is None


def test_a_queued_run_keeps_them_only_in_memory(server):
    thread = server.thread()
    body = {"assistant_id": "leaky", "input": {"messages": "x"}, "config": {"configurable": SECRETS}}
    runs = [
        server.ask("POST", f"/threads/{thread}/runs", json={**body, "after_seconds": 600})["run_id"] for _ in range(2)
    ]
    for run in runs:
        assert server.ask("GET", f"/threads/{thread}/runs/{run}")["status"] == "pending"
    server.kill()
    must_be_clean("the database", stored(server))
    server.restart()
    for run in runs:
        server.ask("POST", f"/threads/{thread}/runs/{run}/cancel", params={"wait": "1"})


REFUSED = [
    ("POST", "/assistants", {"graph_id": "leaky", "config": {"configurable": {"custom_api_key": "x"}}}, "config.configurable.custom_api_key"),
    ("POST", "/assistants", {"graph_id": "leaky", "context": {"a": [{"password": "x"}]}}, "context.a.0.password"),
    ("POST", "/assistants", {"graph_id": "leaky", "config": {"configurable": {"note": JWT}}}, "config.configurable.note"),
    ("POST", "/assistants", {"graph_id": "leaky", "metadata": {"api_key": "x"}}, "metadata.api_key"),
    ("PATCH", "/assistants/{assistant}", {"config": {"configurable": {"apiKeys": {"A": "x"}}}}, "config.configurable.apiKeys.A"),
    ("POST", "/threads", {"metadata": {"access_token": "x"}}, "metadata.access_token"),
    ("PATCH", "/threads/{thread}", {"metadata": {"access_token": "x"}}, "metadata.access_token"),
    (
        "POST", "/runs/crons",
        {"assistant_id": "leaky", "schedule": "0 0 1 1 *", "input": {}, "config": {"configurable": {"custom_api_key": "x"}}},
        "config.configurable.custom_api_key",
    ),
    (
        "POST", "/threads/{thread}/runs/crons",
        {"assistant_id": "leaky", "schedule": "0 0 1 1 *", "input": {}, "metadata": {"secret": "x"}},
        "metadata.secret",
    ),
]  # fmt: skip


@pytest.mark.parametrize(("method", "path", "body", "place"), REFUSED)
def test_secrets_in_stored_objects_are_refused(server, method, path, body, place):
    assistant = server.ask("POST", "/assistants", json={"graph_id": "leaky"})["assistant_id"]
    path = path.format(assistant=assistant, thread=server.thread())
    answer = server.ask(method, path, status=422, json=body)
    assert (
        answer["detail"]
        == f"{place}: keys are not stored; send it with each run, or set it in the server's environment"
    )


def test_names_that_only_look_like_one_are_kept(server):
    config = {
        "configurable": {"max_tokens": 100, "token_url": "http://127.0.0.1", "auth_required": True, "api_key": None}
    }
    made = server.ask("POST", "/assistants", json={"graph_id": "leaky", "config": config})
    assert made["config"] == config
    assert server.ask("POST", "/threads", json={"metadata": {"note": "Bearer 12345678"}})


def test_headers_of_requests_contain_the_secrets(heddle, scripted):
    peer_server = scripted(lambda peer, request: peer.answer(200, {"text": "fine"}))
    graph = {
        "name": "sender",
        "state": {"said": {}},
        "nodes": {
            "send": {
                "kind": "http",
                "url": "{{config.url}}",
                "headers": {"Authorization": "Bearer {{config.custom_api_key}}", "X-Plain": "{{config.plain}}"},
                "update": {"said": "{{response.body.text}}"},
            }
        },
        "edges": [["__start__", "send"], ["send", "__end__"]],
    }
    server = heddle(graphs={"sender": graph})
    thread = server.thread()
    values = server.wait("sender", {"said": ""}, thread=thread, configurable={**SECRETS, "url": peer_server.url})
    assert values["said"] == "fine"
    headers = peer_server.requests[0].headers
    assert headers["authorization"] == f"Bearer {MARK}-custom" and headers["x-plain"] == CANARY


def test_a_run_continues_without_them_after_a_crash(heddle, scripted):
    def handle(peer, request) -> None:
        if request.number == 0:
            peer.wait_closed()
            peer.close()
        else:
            peer.answer(200, {"text": "fine"})

    gate = scripted(handle)
    graph = {
        "name": "gated",
        "state": {"seen": {}, "said": {}},
        "nodes": {
            "first": {"kind": "set", "update": {"seen": "{{config.custom_api_key}}"}},
            "gate": {"kind": "http", "url": "{{config.gate}}", "update": {"said": "{{response.body.text}}"}},
        },
        "edges": [["__start__", "first"], ["first", "gate"], ["gate", "__end__"]],
    }
    server = heddle(graphs={"gated": graph})
    thread = server.thread()
    body = {"assistant_id": "gated", "input": {"said": ""}, "config": {"configurable": {**SECRETS, "gate": gate.url}}}
    run = server.ask("POST", f"/threads/{thread}/runs", json=body)["run_id"]
    wait_for(lambda: gate.requests, what="the run at the gate")
    server.kill()
    must_be_clean("the database", stored(server))
    server.restart()
    values = server.ask("GET", f"/threads/{thread}/runs/{run}/join")
    assert values["said"] == "fine" and values["seen"] == "heddle:secret:custom_api_key"
