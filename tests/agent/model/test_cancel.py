"""A cancel closes the provider's socket, in whatever phase; nothing of the answer is written."""

import threading

import pytest
from programs import wait_for

GRAPH = {
    "name": "chat",
    "state": {"messages": {"reducer": "messages"}},
    "nodes": {"model": {"kind": "model"}},
    "edges": [["__start__", "model"], ["model", "__end__"]],
}
HI = {"messages": [{"role": "user", "content": "Hi"}]}


def delta(text: str) -> dict:
    return {"choices": [{"index": 0, "delta": {"content": text}}]}


def before_the_head(peer, reached):
    reached.set()
    peer.wait_closed()


def before_the_first_word(peer, reached):
    peer.begin_sse()
    reached.set()
    peer.wait_closed()


def in_the_middle(peer, reached):
    peer.begin_sse()
    peer.event(delta("Half an "))
    peer.event(delta("answer"))
    reached.set()
    peer.wait_closed()


def between_tries(peer, reached):
    peer.answer(503, {"error": {"message": "Later"}}, headers={"Retry-After": "50"})
    reached.set()


def has_ended(server, thread: str) -> None:
    """Also stored: until then the state may be an older one."""
    wait_for(lambda: server.ask("GET", f"/threads/{thread}")["status"] not in ("busy", "running"), what="the end")


@pytest.mark.parametrize("phase", [before_the_head, before_the_first_word, in_the_middle, between_tries])
@pytest.mark.parametrize("action", ["interrupt", "rollback"])
def test_cancel(heddle, scripted, phase, action):
    reached = threading.Event()
    model = scripted(lambda peer, request: phase(peer, reached))
    server = heddle(graphs={"chat": GRAPH})
    thread = server.thread()
    settings = {"base_url": model.url, "custom_model_name": "m"}
    body = {"assistant_id": "chat", "input": HI, "config": {"configurable": settings}}
    run = server.ask("POST", f"/threads/{thread}/runs", json=body)["run_id"]
    assert reached.wait(60)
    with server.client() as client:
        answer = client.post(f"/threads/{thread}/runs/{run}/cancel", params={"wait": 1, "action": action})
    assert answer.status_code < 300, answer.text
    if phase is not between_tries:
        model.wait_closed()
    has_ended(server, thread)
    state = server.state(thread)["values"]
    assert [message["content"] for message in state.get("messages", [])] in (["Hi"], [])
    assert len(model.requests) == 1


def test_a_deadline_closes_the_socket(heddle, scripted):
    def handler(peer, request):
        peer.begin_sse()
        peer.event(delta("Half"))
        peer.wait_closed()

    model = scripted(handler)
    graph = {**GRAPH, "nodes": {"model": {"kind": "model", "timeout_ms": 500}}}
    server = heddle(graphs={"chat": graph})
    got = server.wait("chat", HI, configurable={"base_url": model.url, "custom_model_name": "m"})["__error__"]
    assert got["error"] == "NodeTimeoutError"
    model.wait_closed()


def test_a_client_that_goes_takes_the_answer_with_it(heddle, scripted):
    reached = threading.Event()
    model = scripted(lambda peer, request: in_the_middle(peer, reached))
    server = heddle(graphs={"chat": GRAPH})
    thread = server.thread()
    body = {
        "assistant_id": "chat",
        "input": HI,
        "config": {"configurable": {"base_url": model.url, "custom_model_name": "m"}},
        "on_disconnect": "cancel",
        "stream_mode": ["messages-tuple"],
    }
    with server.client() as client:
        with client.stream("POST", f"/threads/{thread}/runs/stream", json=body) as answer:
            for line in answer.iter_lines():
                if "answer" in line:
                    break
    model.wait_closed()
    has_ended(server, thread)
    assert [message["content"] for message in server.state(thread)["values"]["messages"]] == ["Hi"]
