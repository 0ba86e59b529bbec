"""Every failure of a provider is an error that describes it, and stores no partial response."""

import json
import socket

import pytest
from programs import Heddle

MODEL = {
    "name": "chat",
    "state": {"messages": {"reducer": "messages"}},
    "nodes": {"model": {"kind": "model", "tries": 3}},
    "edges": [["__start__", "model"], ["model", "__end__"]],
}
HI = {"messages": [{"role": "user", "content": "Hi"}]}


def graph(**members) -> dict:
    return {**MODEL, "nodes": {"model": {**MODEL["nodes"]["model"], **members}}}


@pytest.fixture(scope="module")
def server():
    """One server for all tests of this file: a failure must not affect the next test."""
    quiet = graph(idle_ms=300, tries=1)
    server = Heddle(graphs={"once": graph(tries=1), "chat": graph(), "quiet": quiet}).start()
    yield server
    server.stop()
    server.remove()


def delta(text: str) -> dict:
    return {"model": "m", "choices": [{"index": 0, "delta": {"content": text}}]}


def finish(reason: str = "stop") -> dict:
    return {"choices": [{"index": 0, "delta": {}, "finish_reason": reason}]}


def answer_well(peer, text: str = "Well.") -> None:
    peer.begin_sse()
    peer.event(delta(text))
    peer.event(finish())
    peer.event("[DONE]")
    peer.end()


def settings(server) -> dict:
    return {"base_url": server.url, "custom_model_name": "m", "custom_api_key": "sk-0123456789"}


def cut_in_a_character(peer, request):
    text = json.dumps(delta("Grü"), ensure_ascii=False).encode()
    peer.begin_sse()
    peer.chunk(b"data: " + text[: text.index("ü".encode()) + 1])
    peer.close()  # without the end of the body


def cut_in_json(peer, request):
    peer.begin_sse()
    peer.event(delta("Half"))
    peer.chunk('data: {"choices":[{"del')
    peer.end()


def cut_after_a_word(peer, request):
    peer.begin_sse()
    peer.event(delta("Half"))
    peer.end()


def reset_in_the_middle(peer, request):
    peer.begin_sse()
    peer.event(delta("Half"))
    peer.reset()


def not_json(peer, request):
    peer.begin_sse()
    peer.event(delta("Half"))
    peer.event('{"choices": [}')
    peer.wait_closed()


def not_utf8(peer, request):
    peer.begin_sse()
    peer.chunk(b'data: {"choices":[{"delta":{"content":"\xff\xfe"}}]}\n\n')
    peer.wait_closed()


def web_page(peer, request):
    peer.answer(200, "<html>Welcome</html>", content_type="text/html; charset=utf-8")


def no_http(peer, request):
    peer.send("SSH-2.0-OpenSSH\r\n")
    peer.close()


def error_in_the_middle(peer, request):
    peer.begin_sse()
    peer.event(delta("Half"))
    peer.event({"error": {"message": "The engine is on fire", "type": "server_error"}})
    peer.wait_closed()


def nothing_but_done(peer, request):
    peer.begin_sse()
    peer.event("[DONE]")
    peer.end()


def empty_body(peer, request):
    peer.answer(200, "", content_type="application/json")


def filtered(peer, request):
    peer.begin_sse()
    peer.event(finish("content_filter"))
    peer.event("[DONE]")
    peer.end()


def silent(peer, request):
    peer.wait_closed()


def silent_after_a_word(peer, request):
    peer.begin_sse()
    peer.event(delta("Half"))
    peer.wait_closed()


def refuse(status: int, **error):
    def handler(peer, request):
        peer.answer(status, {"error": error})

    return handler


FAILURES = {
    "cut in a character": (cut_in_a_character, "APIConnectionError", "within the response"),
    "cut in JSON": (cut_in_json, "APIConnectionError", "before the response was complete"),
    "cut after a word": (cut_after_a_word, "APIConnectionError", "before the response was complete"),
    # A reset discards unread bytes, so it may also arrive before the response.
    "reset": (reset_in_the_middle, "APIConnectionError", "OpenAI"),
    "not JSON": (not_json, "APIResponseValidationError", "not JSON"),
    "not UTF-8": (not_utf8, "APIResponseValidationError", "not JSON"),
    "a web page": (web_page, "APIResponseValidationError", "text/html"),
    "no HTTP": (no_http, "APIConnectionError", "not HTTP"),
    "an error in the middle": (error_in_the_middle, "APIError", "The engine is on fire"),
    "an empty stream": (nothing_but_done, "APIResponseValidationError", "empty response"),
    "an empty body": (empty_body, "APIResponseValidationError", "not JSON"),
    "filtered": (filtered, "ContentFilterError", "content_filter"),
    "400": (refuse(400, message="No such parameter: foo"), "BadRequestError", "No such parameter: foo"),
    "too long": (
        refuse(400, message="8193 tokens", code="context_length_exceeded"),
        "BadRequestError",
        "too long for the model",
    ),
    "401": (refuse(401, message="Bad key sk-0123456789"), "AuthenticationError", "Bad key ***"),
    "403": (refuse(403, message="Not for you"), "AuthenticationError", "Not for you"),
    "404": (refuse(404, message="No model m"), "NotFoundError", "No model m"),
    "422": (refuse(422, message="Odd"), "BadRequestError", "Odd"),
}


@pytest.mark.parametrize("name", FAILURES)
def test_failures_are_clear_and_store_nothing(server, scripted, name):
    handler, error, text = FAILURES[name]
    model = scripted(handler)
    thread = server.thread()
    got = server.wait("once", HI, thread, settings(model))["__error__"]
    assert (got["error"], text in got["message"]) == (error, True), got
    assert "sk-0123456789" not in json.dumps(got)
    state = server.state(thread)
    assert [message["content"] for message in state["values"]["messages"]] == ["Hi"]
    assert state["next"] == ["model"]
    assert server.ask("GET", f"/threads/{thread}")["status"] == "error"


@pytest.mark.parametrize("handler", [silent, silent_after_a_word])
def test_a_silent_provider_times_out(server, scripted, handler):
    model = scripted(handler)
    got = server.wait("quiet", HI, configurable=settings(model))["__error__"]
    assert got["error"] == "APITimeoutError", got
    model.wait_closed()


def test_an_unreachable_provider(server):
    with socket.socket() as nobody:  # holds the port, so that no other program listens there
        nobody.bind(("127.0.0.1", 0))
        model = {"base_url": f"http://127.0.0.1:{nobody.getsockname()[1]}", "custom_model_name": "m"}
        got = server.wait("once", HI, configurable=model)["__error__"]
    assert got["error"] == "APIConnectionError"
    assert "is unreachable" in got["message"]


@pytest.mark.parametrize("status", [408, 409, 429, 500, 503])
def test_transient_failures_are_retried(server, scripted, status):
    def handler(peer, request):
        if request.number == 0:
            peer.answer(status, {"error": {"message": "Later"}}, headers={"Retry-After": "0"})
        else:
            answer_well(peer)

    model = scripted(handler)
    values = server.wait("chat", HI, configurable=settings(model))
    assert values["messages"][-1]["content"] == "Well."
    assert len(model.requests) == 2


def test_tries_come_to_an_end(server, scripted):
    def handler(peer, request):
        peer.answer(500, {"error": {"message": "Never"}}, headers={"Retry-After": "0"})

    model = scripted(handler)
    got = server.wait("chat", HI, configurable=settings(model))["__error__"]
    assert got["error"] == "InternalServerError"
    assert "Never" in got["message"] and "3 times" in got["message"]
    assert len(model.requests) == 3


def test_after_a_failure_the_thread_continues(server, scripted):
    def handler(peer, request):
        if request.number == 0:
            cut_after_a_word(peer, request)
        else:
            answer_well(peer)

    model = scripted(handler)
    thread = server.thread()
    assert "__error__" in server.wait("chat", HI, thread, settings(model))
    values = server.wait("chat", None, thread, settings(model))
    assert [message["content"] for message in values["messages"]] == ["Hi", "Well."]


def test_an_answer_split_at_every_byte(server, scripted):
    def handler(peer, request):
        text = "".join(
            f"data: {json.dumps(event, ensure_ascii=False)}\r\n\r\n" for event in (delta("Grüße 🌍"), finish())
        )
        peer.begin_sse()
        for byte in (text + "data: [DONE]\r\n\r\n").encode():
            peer.chunk(bytes([byte]))
        peer.end()

    model = scripted(handler)
    assert server.wait("chat", HI, configurable=settings(model))["messages"][-1]["content"] == "Grüße 🌍"


def test_a_server_that_holds_the_connection_after_its_last_word(server, scripted):
    def handler(peer, request):
        peer.begin_sse()
        peer.event(delta("Well."))
        peer.event(finish())
        peer.event("[DONE]")
        peer.wait_closed()

    model = scripted(handler)
    assert server.wait("chat", HI, configurable=settings(model))["messages"][-1]["content"] == "Well."
    model.wait_closed()


def test_a_huge_answer(server, scripted):
    def handler(peer, request):
        peer.begin_sse()
        for _ in range(64):
            peer.event(delta("x" * 65536))
        peer.event(finish())
        peer.event("[DONE]")
        peer.end()

    model = scripted(handler)
    values = server.wait("chat", HI, configurable=settings(model))
    assert len(values["messages"][-1]["content"]) == 64 * 65536


def test_an_answer_that_never_ends_is_an_error(server, scripted):
    def handler(peer, request):
        peer.begin_sse()
        while peer.event(delta("x" * 262144)):
            pass

    model = scripted(handler)
    got = server.wait("chat", HI, configurable=settings(model))["__error__"]
    assert got["error"] == "APIResponseValidationError", got
    assert "too large" in got["message"]
    model.wait_closed()
