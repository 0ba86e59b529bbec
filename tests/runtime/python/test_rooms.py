"""Graphs of a project in a room: their answers and questions are chat messages."""

from __future__ import annotations

from pathlib import Path

import pytest
from programs import wait_for

PROJECT = Path(__file__).parent / "project"


@pytest.fixture(scope="module")
def server(project_module):
    return project_module(folder=PROJECT)


@pytest.fixture
def room(server):
    return f"/threads/{server.thread()}"


def messages(server, room, count):
    """Waits until the room has `count` messages."""
    wait_for(lambda: len(server.ask("GET", f"{room}/room/messages")) == count)
    return server.ask("GET", f"{room}/room/messages")


def test_an_answer_of_a_python_graph_is_a_chat_message(server, room):
    for number in range(2):
        body = {"content": f"turn {number}", "mentions": ["chat"]}
        server.ask("POST", f"{room}/room/messages", 201, json=body)
        *_, asked, answer = messages(server, room, 2 * number + 2)
        assert (answer["sender"]["name"], answer["state"]) == ("chat", "ok")
        state = server.ask("GET", f"{room}/state", params={"assistant_id": "chat"})
        assert answer["content"] == state["values"]["messages"][-1]["content"]
        assert answer["reply_to"] == asked["id"] and answer["checkpoint_id"] == state["checkpoint"]["checkpoint_id"]


def test_a_plain_run_of_a_python_graph_is_a_turn(server, room):
    server.ask("PUT", f"{room}/room", json={})
    body = {"assistant_id": "chat", "input": {"messages": [{"role": "user", "content": "hello", "id": "h1"}]}}
    server.ask("POST", f"{room}/runs/wait", json=body)
    asked, answer = messages(server, room, 2)
    assert (asked["id"], asked["content"]) == ("h1", "hello")
    assert answer["sender"]["type"] == "agent" and answer["content"]


def test_a_question_of_a_python_graph_waits(server, room):
    server.ask("PUT", f"{room}/room", json={})
    server.ask("POST", f"{room}/runs/wait", json={"assistant_id": "questions", "input": {"log": ["in"]}})
    [question] = messages(server, room, 1)
    assert question["state"] == "pending" and question["interrupts"]
