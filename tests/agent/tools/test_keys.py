"""Idempotency keys: a call that is repeated after a kill keeps its key, and no other call has it."""

from __future__ import annotations

import re

import httpx
import pytest
from mcp_calls import call, graph
from programs import wait_for

META = "heddle/idempotency-key"
GO = {"messages": [{"role": "user", "content": "go"}]}
KEY = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")


def with_source(source: dict, *calls: dict) -> dict:
    declared = graph(*calls)
    return {**declared, "nodes": {**declared["nodes"], "act": {"kind": "tools", "sources": [source]}}}


def http_node(url: str, **members) -> dict:
    return {
        "name": "plain",
        "state": {"messages": {"reducer": "messages"}},
        "nodes": {"ask": {"kind": "http", "url": url, "body": {"a": 1}, **members}},
        "edges": [["__start__", "ask"], ["ask", "__end__"]],
    }


def start(server, thread: str, name: str = "caller", **body) -> str:
    body = {"assistant_id": name, "input": GO, **body}
    return server.ask("POST", f"/threads/{thread}/runs", json=body)["run_id"]


def kill_and_recover(server, thread: str, run: str, keys) -> list[str]:
    """Kills the server after a call, and restarts it; returns the keys of both calls."""
    wait_for(lambda: len(keys()) == 1, what="the call")
    # The run resumes from the checkpoint, which must have been stored.
    wait_for(lambda: server.state(thread)["next"], what="the checkpoint")
    server.kill()
    server.restart()
    wait_for(lambda: len(keys()) == 2, what="the repeated call")
    server.ask("POST", f"/threads/{thread}/runs/{run}/cancel", status=202, params={"wait": "0"})
    return keys()


class Holder:
    """An HTTP server that responds only when it is open."""

    def __init__(self, scripted):
        self.is_open = False
        self.server = scripted(self.handle)

    def handle(self, peer, request) -> None:
        if self.is_open:
            peer.answer(200, {"ok": True})
        else:
            peer.wait_closed()
            peer.close()

    def keys(self) -> list[str]:
        return [request.headers.get("idempotency-key") for request in self.server.requests]


@pytest.fixture
def holder(scripted):
    return Holder(scripted)


@pytest.mark.parametrize("kind", ["tool", "node"])
def test_http_calls_repeat_their_key_after_a_kill(heddle, holder, kind):
    tool = {"name": "pay", "url": holder.server.url + "/pay", "method": "POST", "body": True}
    declared = with_source({"http": [tool]}, call("pay")) if kind == "tool" else http_node(holder.server.url + "/pay")
    server = heddle(graphs={"caller": declared})
    thread = server.thread()
    first, second = kill_and_recover(server, thread, start(server, thread), holder.keys)
    assert first == second and KEY.fullmatch(first)
    holder.is_open = True
    # A retry by the user is a new call.
    wait_for(lambda: server.ask("GET", f"/threads/{thread}")["status"] != "busy", what="the end of the run")
    server.wait("caller", GO, thread=server.thread())
    server.wait("caller", None, thread=thread)
    keys = holder.keys()
    assert len(keys) == 4 and len(set(keys)) == 3, keys


def test_calls_of_one_message_have_keys_of_their_own(heddle, holder):
    holder.is_open = True
    tool = {"name": "pay", "url": holder.server.url + "/pay", "method": "POST", "body": True}
    server = heddle(graphs={"caller": with_source({"http": tool}, call("pay", "c1"), call("pay", "c2"))})
    server.wait("caller", GO, thread=server.thread())
    assert len(set(holder.keys())) == 2


@pytest.mark.parametrize(("given", "sent"), [("mine", "mine"), (None, None)])
def test_a_declared_header_wins(heddle, holder, given, sent):
    holder.is_open = True
    tool = {"name": "pay", "url": holder.server.url + "/pay", "headers": {"idempotency-KEY": given}}
    server = heddle(graphs={"caller": with_source({"http": tool}, call("pay"))})
    server.wait("caller", GO, thread=server.thread())
    assert holder.keys() == [sent]


def test_a_header_of_an_http_node_wins(heddle, holder):
    holder.is_open = True
    server = heddle(graphs={"plain": http_node(holder.server.url, headers={"Idempotency-Key": "mine"})})
    server.wait("plain", GO, thread=server.thread())
    assert holder.keys() == ["mine"]


def test_failed_attempts_of_a_task_repeat_the_key(heddle, scripted):
    other = scripted(lambda peer, request: peer.answer(200 if request.number else 500, {}))
    declared = http_node(other.url, retry={"attempts": 2, "delay_ms": 1})
    heddle(graphs={"plain": declared}).wait("plain", GO)
    first, second = [request.headers["idempotency-key"] for request in other.requests]
    assert first == second


def test_mcp_calls_repeat_their_key_after_a_kill(heddle, process, node_folder):
    program = node_folder / "node_modules/@modelcontextprotocol/server-everything/dist/index.js"
    bridge = process(["node", "mcp/bridge.mjs", "node", str(program), "stdio"], ready=r"^ready (\d+)", cwd=node_folder)
    url = f"http://127.0.0.1:{bridge.found[1]}"

    def keys() -> list[str]:
        seen = httpx.get(url + "/seen", timeout=60).json()
        return [line["params"]["_meta"][META] for line in seen if line.get("method") == "tools/call"]

    server = heddle(graphs={"caller": graph(call("trigger-long-running-operation", duration=600, steps=2))})
    configurable = {"mcp_config": {"servers": [{"name": "s", "url": url}]}}
    thread = server.thread()
    run = start(server, thread, config={"configurable": configurable})
    first, second = kill_and_recover(server, thread, run, keys)
    assert first == second and KEY.fullmatch(first)


@pytest.mark.parametrize("path", ["rpc", "rest-plain", "old"])
def test_a2a_messages_repeat_their_key_after_a_kill(heddle, process, node_folder, path):
    line = "old" if path == "old" else "new"
    agent = process(["node", str(node_folder / "a2a" / "agent.mjs"), line], ready=r"ready (\S+)", cwd=node_folder)

    def keys() -> list[str]:
        return [given[META] for given in httpx.get(agent.found[1] + "/seen", timeout=60).json()["metadata"]]

    source = {"a2a": [{"name": "friend", "url": f"{agent.found[1]}/{path}"}]}
    server = heddle(graphs={"caller": with_source(source, call("friend", message="long"))})
    thread = server.thread()
    first, second = kill_and_recover(server, thread, start(server, thread), keys)
    assert first == second and KEY.fullmatch(first)
