"""A cancel closes the provider's socket in every phase; the text so far is kept, but not by a
rollback."""

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
    """Waits until the end is stored: before that the state may be an older one."""
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
    kept = "".join(message["content"] for message in state.get("messages", []))
    assert "HiHalf an answer".startswith(kept) if action == "interrupt" else kept == ""
    assert len(model.requests) == 1


def stop_in_the_middle(server, model, action: str = "interrupt") -> tuple[str, dict]:
    """Stops a response after all text so far was streamed; returns the thread and the receipt."""
    thread = server.thread()
    settings = {"base_url": model.url, "custom_model_name": "m"}
    body = {
        "assistant_id": "chat",
        "input": HI,
        "config": {"configurable": settings},
        "stream_mode": ["messages-tuple"],
    }
    with server.client() as client, client.stream("POST", f"/threads/{thread}/runs/stream", json=body) as answer:
        lines = answer.iter_lines()
        next(line for line in lines if "answer" in line)
        [run] = server.ask("GET", f"/threads/{thread}/runs")
        with server.client() as other:
            path = f"/threads/{thread}/runs/{run['run_id']}/cancel"
            receipt = other.post(path, params={"wait": 1, "action": action}).json()
        for _ in lines:  # to the end
            pass
    model.wait_closed()
    has_ended(server, thread)
    return thread, receipt


def with_a_call(peer, request):
    if request.number > 0:
        peer.answer(200, {"choices": [{"message": {"role": "assistant", "content": "Whole"}, "finish_reason": "stop"}]})
        return
    peer.begin_sse()
    call = {"index": 0, "id": "c1", "type": "function", "function": {"name": "tool", "arguments": '{"a": '}}
    peer.event({"choices": [{"index": 0, "delta": {"tool_calls": [call]}}]})
    peer.event(delta("Half an "))
    peer.event(delta("answer"))
    peer.wait_closed()


def test_a_stopped_answer_is_kept_as_a_message(heddle, scripted):
    model = scripted(with_a_call)
    server = heddle(graphs={"chat": GRAPH})
    thread, receipt = stop_in_the_middle(server, model)
    state = server.state(thread)
    [asked, kept] = state["values"]["messages"]
    assert (asked["content"], kept["type"], kept["content"]) == ("Hi", "ai", "Half an answer")
    assert kept["response_metadata"]["stopped"] is True and kept["response_metadata"]["finish_reason"] == "stopped"
    assert not kept.get("tool_calls") and not kept.get("invalid_tool_calls")
    assert state["next"] == [] and server.ask("GET", f"/threads/{thread}")["status"] == "idle"
    assert receipt["status"] == "interrupted" and receipt["stopped_at_step"] == 1
    assert receipt["checkpoint_id"] == state["checkpoint"]["checkpoint_id"]
    assert state["metadata"]["run_id"] == receipt["run_id"]
    settings = {"base_url": model.url, "custom_model_name": "m"}
    more = {"assistant_id": "chat", "input": HI, "config": {"configurable": settings}}
    server.ask("POST", f"/threads/{thread}/runs/wait", json=more)
    sent = [(each["role"], each["content"]) for each in model.requests[1].json["messages"]]
    assert sent == [("user", "Hi"), ("assistant", "Half an answer"), ("user", "Hi")]


def test_a_rollback_keeps_nothing_of_an_answer(heddle, scripted):
    thread, _ = stop_in_the_middle(server := heddle(graphs={"chat": GRAPH}), scripted(with_a_call), "rollback")
    assert not server.state(thread)["values"].get("messages")


def test_a_stopped_answer_is_not_kept_when_disabled(heddle, scripted):
    server = heddle(graphs={"chat": GRAPH}, config={"stop": {"keep_answer": False}})
    thread, _ = stop_in_the_middle(server, scripted(with_a_call))
    state = server.state(thread)
    assert [message["content"] for message in state["values"]["messages"]] == ["Hi"]
    assert state["next"] == ["model"]


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
    contents = [message["content"] for message in server.state(thread)["values"]["messages"]]
    assert contents == ["Hi", "Half an answer"]
