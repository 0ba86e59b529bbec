"""A conversation over several runs: the exact requests of a client."""

import json

import httpx
import pytest
from plain import Thread, events, identity, texts

ONE = """\
{
  "assistant_id": "my-assistant",
  "input": {"messages": [{"role": "user", "content": "Hello"}]}
}
"""
TWO = """\
{
  "assistant_id": "my-assistant",
  "input": {"messages": [{"role": "user", "content": "How are you?"}]}
}
"""
THREE = """\
{
  "assistant_id": "my-assistant",
  "checkpoint_id": "1ef8f8c8-7890-6789-8000-000000000001",
  "input": {"messages": [{"role": "user", "content": "Let's try again"}]}
}
"""
SAVED = """\
{
  "messages": [
    {"role": "user", "content": "Hello"},
    {"role": "assistant", "content": "Hi there!"}
  ]
}
"""
PROCESSED = """\
{
  "messages": [
    {"role": "user", "content": "Hello"},
    {"role": "assistant", "content": "Hi there!"},
    {"role": "user", "content": "How are you?"}
  ]
}
"""
UNKNOWN_CHECKPOINT = "1ef8f8c8-7890-6789-8000-000000000001"
ROLES = {"human": "user", "ai": "assistant"}


def said(values: dict) -> dict:
    """Returns the state in the short form of messages."""
    return {"messages": [{"role": ROLES[m["type"]], "content": m["content"]} for m in values["messages"]]}


def post(thread: Thread, body: str, status: int = 200) -> httpx.Response:
    answer = thread.http.post(
        thread.path("/runs/stream"), content=body.encode(), headers={"Content-Type": "application/json"}
    )
    assert answer.status_code == status, answer.text
    return answer


@pytest.fixture
def thread(http):
    """The thread of the example: a new one with its id."""
    example = "550e8400-e29b-41d4-a716-446655440000"
    http.delete(f"/threads/{example}")
    return Thread(http, thread_id=example)


def test_a_conversation_continues(thread):
    answer = post(thread, ONE)
    assert answer.headers["content-type"].startswith("text/event-stream")
    run_id = events(answer.text)[0][1]["run_id"]
    assert answer.headers["content-location"] == f"/threads/{thread.id}/runs/{run_id}"
    assert said(thread.state()["values"]) == json.loads(SAVED)

    parts = events(post(thread, TWO).text)
    first, *_, last = [data for event, data, _ in parts if event == "values"]
    assert said(first) == json.loads(PROCESSED)  # the state when the graph started
    assert said(last)["messages"][:3] == json.loads(PROCESSED)["messages"]
    assert said(last)["messages"][3] == {"role": "assistant", "content": "I am fine."}
    assert said(thread.state()["values"]) == said(last)


def test_a_conversation_continues_from_any_checkpoint(thread):
    post(thread, ONE)
    point = thread.state()
    post(thread, TWO)
    parts = events(post(thread, THREE.replace(UNKNOWN_CHECKPOINT, identity(point))).text)
    last = [data for event, data, _ in parts if event == "values"][-1]
    assert texts(last) == ["Hello", "Hi there!", "Let's try again", "Let us."]
    new = thread.state()
    assert texts(new["values"]) == texts(last)
    inputs = [state for state in thread.history() if state["metadata"]["source"] == "input"]
    assert inputs[0]["parent_checkpoint"]["checkpoint_id"] == identity(point)
    old = [state for state in thread.history() if texts(state["values"])[-1:] == ["I am fine."]]
    assert len(old) == 1  # the other branch is still there


@pytest.mark.beyond_peer("begins with an empty state instead")
def test_an_unknown_checkpoint(thread):
    post(thread, ONE)
    before = thread.history()
    answer = thread.http.post(thread.path("/runs/stream"), content=THREE.encode())
    assert answer.status_code in (404, 422) or "error" in [event for event, _, _ in events(answer.text)], answer.text
    assert thread.history() == before


def test_each_checkpoint_is_linked_to_the_one_before(thread):
    post(thread, ONE)
    post(thread, TWO)
    history = thread.history()
    assert len(history) == 6
    for newer, older in zip(history, history[1:]):
        assert newer["parent_checkpoint"]["checkpoint_id"] == identity(older)
        assert identity(newer) > identity(older)
    assert [state["metadata"]["step"] for state in history] == [4, 3, 2, 1, 0, -1]
