"""Outgoing requests of users' runs: nothing that only the server's network can reach."""

from __future__ import annotations

import json
import re
import socket

import pytest
from programs import Heddle, collect, free_port, wait_for
from secured import Secured

REFUSAL = "outgoing.allowed_hosts"


def reader(source: dict, tool: str = "x") -> dict:
    """A scripted model with tools of one source."""
    return {
        "name": "reader",
        "state": {"messages": {"reducer": "messages"}},
        "nodes": {
            "model": {
                "kind": "script",
                "replies": [
                    {"when": {"@eq": ["{{messages[-1].type}}", "tool"]}, "content": "read"},
                    {"content": "", "tool_calls": [{"name": tool, "args": {"query": "x"}, "id": "c1"}]},
                ],
            },
            "tools": {"kind": "tools", "sources": [source]},
        },
        "edges": [
            ["__start__", "model"],
            {
                "from": "model",
                "fanout": {
                    "over": "{{messages[-1].tool_calls}}",
                    "as": "call",
                    "to": "tools",
                    "arg": {"call": "{{call}}"},
                },
            },
            ["tools", "model"],
        ],
    }


def fetcher(url) -> dict:
    return {
        "name": "fetcher",
        "state": {"got": {}},
        "nodes": {"ask": {"kind": "http", "url": url, "update": {"got": "{{response.status}}"}}},
        "edges": [["__start__", "ask"]],
    }


GRAPHS = {
    "mcp": reader({"mcp": "{{config.mcp}}"}),
    "a2a": reader({"a2a": "{{config.a2a}}"}),
    "langconnect": reader({"langconnect": "{{config.rag}}"}),
    "chroma": reader({"chroma": "{{config.rag_config}}"}, "search_archives"),
    "fetch": fetcher("{{config.url}}"),
    "http": reader({"http": "{{config.tools}}"}),
}
# The configuration that makes each graph send a request to a URL.
WAYS = {
    "mcp": lambda url: {"mcp": {"url": url}},
    "a2a": lambda url: {"a2a": [{"name": "x", "url": url}]},
    "langconnect": lambda url: {
        "rag": {"rag_url": url, "collections": ["6f1c1ba9-4d6e-4d1c-9c43-0d6f0f5f0c11"]},
        "x-supabase-access-token": "t-0815",
    },
    "chroma": lambda url: {
        "rag_config": {
            "chromadb_url": url,
            "archives": [{"collection_name": "x"}],
            "embeddings_url": url,
            "embeddings_model": "m",
        }
    },
    "fetch": lambda url: {"url": url},
    "http": lambda url: {"tools": [{"name": "x", "description": "x", "url": url}]},
    "agent": lambda url: {"base_url": url, "custom_model_name": "m"},
}


class Listener:
    """Counts connections; never responds."""

    def __enter__(self):
        self.socket = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self.socket.getsockname()[1]}"
        return self

    def __exit__(self, *unused):
        self.socket.close()

    def was_asked(self) -> bool:
        self.socket.setblocking(False)
        try:
            self.socket.accept()[0].close()
        except BlockingIOError:
            return False
        return True


@pytest.fixture(scope="module")
def server(secured_module):
    from pathlib import Path

    agent = Path(__file__).resolve().parents[3] / "src" / "cli" / "graphs" / "agent.json"
    return secured_module(graphs=GRAPHS | {"agent": agent})


def told(server, way: str, url: str) -> str:
    """Returns everything that a client sees of a run that sends a request to the URL."""
    body = {
        "assistant_id": way,
        "input": {"messages": [{"role": "user", "content": "go"}]} if way != "fetch" else {},
        "config": {"configurable": WAYS[way](url)},
        "stream_mode": ["custom", "values"],
    }
    with server.as_user("alice") as http:
        answer = http.post("/runs/stream", json=body)
    assert answer.status_code == 200, answer.text
    return answer.text


@pytest.mark.parametrize("way", sorted(WAYS))
def test_private_addresses_are_refused(server, way):
    with Listener() as listener:
        text = told(server, way, listener.url)
        assert REFUSAL in text, text
        assert not listener.was_asked()


@pytest.mark.parametrize("way", sorted(WAYS))
def test_open_and_closed_ports_are_indistinguishable(server, way):
    """No port scanning: apart from the port, the text of the refusal is the same."""

    def refusals(url: str) -> list[str]:
        port = url.rsplit(":", 1)[1]
        return [found.replace(port, "PORT") for found in re.findall(rf'[^"]*{REFUSAL}[^"]*', told(server, way, url))]

    with Listener() as listener:
        open_port = refusals(listener.url)
    assert open_port and open_port == refusals(f"http://127.0.0.1:{free_port()}")


@pytest.mark.parametrize(
    "url",
    [
        "http://localhost:{}", "http://127.1:{}", "http://0x7f000001:{}", "http://2130706433:{}", "http://[::ffff:127.0.0.1]:{}",
        "http://0.0.0.0:{}", "http://0:{}", "http://user@127.0.0.1:{}", "http://127.0.0.1:{}#@example.com/",
    ],
)  # fmt: skip
def test_other_spellings_are_refused_too(server, url):
    with Listener() as listener:
        port = listener.socket.getsockname()[1]
        assert REFUSAL in told(server, "fetch", url.format(port))
        assert not listener.was_asked()


def test_redirects_are_refused_too(secured, scripted):
    inner = scripted(lambda peer, request: peer.answer(200, {"secret": 1}))
    outer = scripted(lambda peer, request: peer.answer(302, "", {"Location": inner.url}))
    port = outer.url.rsplit(":", 1)[1]
    server = secured(graphs=GRAPHS, config={"outgoing": {"allowed_hosts": [f"127.0.0.1:{port}"]}})
    assert REFUSAL in told(server, "fetch", outer.url)
    assert len(outer.requests) == 1 and not inner.requests


def test_allowed_hosts_are_contacted(secured, scripted):
    peer = scripted(lambda peer, request: peer.answer(200, {"fine": True}))
    port = peer.url.rsplit(":", 1)[1]
    for allowed in ("localhost", f"localhost:{port}", "127.0.0.0/8"):
        server = secured(graphs=GRAPHS, config={"outgoing": {"allowed_hosts": [allowed, "::1"]}})
        assert '"got":200' in told(server, "fetch", f"http://localhost:{port}")
        assert REFUSAL in told(server, "fetch", "http://10.1.2.3") or allowed == "0.0.0.0/0"
    server = secured(graphs=GRAPHS, config={"outgoing": {"private": "allow"}})
    assert '"got":200' in told(server, "fetch", peer.url)


def test_addresses_of_the_operator_are_contacted(secured, mock, scripted):
    """Models from the environment, and URLs in graphs that do not depend on state."""
    peer = scripted(lambda peer, request: peer.answer(200, {"fine": True}))
    model = mock()
    server = secured(
        graphs={"fixed": fetcher(peer.url)},
        env={"OPENAI_BASE_URL": model.base_url, "OPENAI_API_KEY": "sk-x"},
    )
    with server.as_user("alice") as http:
        assert http.post("/runs/wait", json={"assistant_id": "fixed", "input": {}}).json() == {"got": 200}
    shipped = secured(env={"OPENAI_BASE_URL": model.base_url, "OPENAI_API_KEY": "sk-x"})
    body = {"assistant_id": "agent", "input": {"messages": [{"role": "user", "content": "hi"}]}}
    with shipped.as_user("alice") as http:
        assert http.post("/runs/wait", json=body).json()["messages"][-1]["type"] == "ai"
    assert model.requests("/v1/chat/completions")


def test_archives_of_the_environment_are_allowed(secured, scripted):
    """But not with a URL from the user, even for the same machine."""

    def answer(peer, request):
        if "embeddings" in request.path:
            peer.answer(200, {"data": [{"index": 0, "embedding": [0.5, 0.5]}]})
        elif request.method == "GET":
            peer.answer(200, {"id": "6f1c1ba9-4d6e-4d1c-9c43-0d6f0f5f0c11", "name": "x"})
        else:
            peer.answer(200, {"ids": [["d1"]], "documents": [["found it"]], "metadatas": [[{}]], "distances": [[0.1]]})

    peer = scripted(answer)
    server = secured(graphs=GRAPHS, env={"DOCPROC_CHROMADB_URL": peer.url, "DOCPROC_TEI_EMBEDDINGS_URL": peer.url})
    body = {"assistant_id": "chroma", "input": {"messages": [{"role": "user", "content": "go"}]}}
    for archive, is_asked in (
        ({"collection_name": "x"}, True),
        ({"collection_name": "x", "chromadb_url": peer.url}, False),
    ):
        config = {"configurable": {"rag_config": {"archives": [archive]}}}
        with server.as_user("alice") as http:
            text = http.post("/runs/wait", json=body | {"config": config}).text
        assert ("found it" in text, REFUSAL in text) == (is_asked, not is_asked), text


def test_webhooks_are_refused_at_once(server):
    for url in (
        "http://127.0.0.1:9/",
        "http://localhost/",
        "http://169.254.169.254/latest/",
        "http://[::1]/",
        "http://10.0.0.1/",
    ):
        with server.as_user("alice") as http:
            answer = http.post("/runs/wait", json={"assistant_id": "fetch", "input": {}, "webhook": url})
            assert answer.status_code == 422 and REFUSAL in answer.text
            answer = http.post("/runs/crons", json={"assistant_id": "fetch", "schedule": "* * * * *", "webhook": url})
            assert answer.status_code == 422 and REFUSAL in answer.text


def test_without_authentication_all_addresses_are_allowed(scripted):
    peer = scripted(lambda peer, request: peer.answer(200, {"fine": True}))
    for create in collect(Heddle):
        server = create(graphs=GRAPHS)
        assert server.wait("fetch", {}, configurable={"url": peer.url}) == {"got": 200}
        server.wait("fetch", {}, configurable={"url": peer.url}, webhook=peer.url + "/hook")
        wait_for(lambda: any(request.path == "/hook" for request in peer.requests), what="the webhook")
        strict = create(graphs=GRAPHS, config={"outgoing": {"private": "deny"}})
        assert REFUSAL in json.dumps(strict.wait("fetch", {}, configurable={"url": peer.url}))


@pytest.mark.parametrize("bad", ["http://x", "10.0.0.1/8", "a b", "x:0"])
def test_invalid_rules_prevent_the_start(bad):
    server = Secured(config={"outgoing": {"allowed_hosts": [bad]}})
    try:
        with pytest.raises(Exception) as error:
            server.start()
        assert REFUSAL in str(error.value)
    finally:
        server.remove()
