"""Tests of the test tools."""

import httpx
import pytest


def test_a_killed_server_restarts_with_its_data(heddle):
    server = heddle()
    thread = server.thread(metadata={"kept": True})
    server.kill()
    server.restart()
    assert server.ask("GET", f"/threads/{thread}")["metadata"]["kept"] is True


def test_no_key_of_the_environment_reaches_a_server(heddle, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "sk-of-somebody")
    assert "OPENAI_API_KEY" not in heddle().environment()
    assert heddle(env={"OPENAI_API_KEY": "sk-test"}).environment()["OPENAI_API_KEY"] == "sk-test"


def test_a_scripted_server_follows_its_script_and_sees_the_end(scripted):
    def handler(peer, request):
        assert request.json == {"a": 1}
        peer.begin_sse()
        peer.event({"n": 1})
        peer.wait_closed()

    server = scripted(handler)
    with httpx.stream("POST", server.url + "/x", json={"a": 1}, timeout=60) as answer:
        assert next(answer.iter_lines()) == 'data: {"n": 1}'
    assert server.wait_closed() == 1
    assert [(request.method, request.path) for request in server.requests] == [("POST", "/x")]


def test_node_finds_its_packages(node):
    assert node("base/packages.mjs").strip() == "function function"


def test_a_node_program_that_fails_fails_the_test(node):
    with pytest.raises(AssertionError, match="ended with 3"):
        node("base/packages.mjs", "3")
