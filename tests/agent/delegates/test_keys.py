"""Keys of a run and its delegates: each goes only to its own target."""

from __future__ import annotations

import pytest
from bosses import BOSS, MESSAGES, call, contents, make

KEY = "zq-key-of-the-user"
WRITER = {
    "name": "writer",
    "state": MESSAGES,
    "nodes": {"model": {"kind": "model"}},
    "edges": [["__start__", "model"], ["model", "__end__"]],
}


def answer(peer, request) -> None:
    """Responds as a model, with one word."""
    head = {"id": "c", "object": "chat.completion.chunk", "model": "m"}
    peer.begin_sse()
    peer.event(
        {**head, "choices": [{"index": 0, "delta": {"role": "assistant", "content": "word"}, "finish_reason": None}]}
    )
    peer.event({**head, "choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]})
    peer.event("[DONE]")
    peer.end()


@pytest.fixture
def model(scripted):
    return scripted(answer)


@pytest.fixture
def server(heddle):
    return heddle(graphs={"boss": BOSS, "writer": WRITER})


def run(server, model, **configurable) -> dict:
    make(server, "writer", "scribe", base_url=model.url + "/v1", custom_model_name="m")
    thread = server.thread()
    configurable = {"calls": [call("scribe")], "assistants": ["scribe"], "custom_api_key": KEY, **configurable}
    values = server.wait("boss", {"messages": "go"}, thread=thread, configurable=configurable)
    assert contents(values)[-1] == "heard: word"
    assert KEY.encode() not in server.database()
    return model.requests[0].headers


def test_the_same_server_gets_the_key(server, model):
    assert run(server, model, base_url=model.url + "/v1")["authorization"] == f"Bearer {KEY}"


def test_another_server_does_not(server, model):
    headers = run(server, model, base_url="http://127.0.0.1:9/v1")
    assert all(KEY not in value for value in headers.values())


def test_a_key_without_a_server_goes_to_none_that_the_delegate_chose(server, model):
    headers = run(server, model)
    assert all(KEY not in value for value in headers.values())
