"""The decisions in docs/server.md where the official servers differ: one test for each table row."""

import json
import uuid

import httpx
import pytest
from langgraph_sdk import get_sync_client
from langgraph_sdk.errors import NotFoundError
from plain import Thread, events, human
from server import Server

pytestmark = pytest.mark.beyond_peer("decides otherwise")


@pytest.fixture
def thread(http):
    return Thread(http)


def stream(thread, http, *modes, graph="echo"):
    """Returns (event, data) of each event."""
    body = {"assistant_id": graph, "input": human("hi"), "stream_mode": list(modes)}
    return [(name, data) for name, data, _ in events(http.post(thread.path("/runs/stream"), json=body).text)]


def test_pieces_are_chunks_and_whole_messages_are_not(thread, http):
    pieces = [data[0] for name, data in stream(thread, http, "messages-tuple") if name == "messages"]
    assert pieces and {piece["type"] for piece in pieces} == {"AIMessageChunk"}
    whole = [
        data for name, data in stream(thread, http, "messages") if name in ("messages/partial", "messages/complete")
    ]
    assert {message["type"] for data in whole for message in data} == {"human", "ai"}


def test_a_message_is_complete_before_the_values_that_hold_it(thread, http):
    seen = set()
    for name, data in stream(thread, http, "messages", "values"):
        if name == "messages/complete":
            seen |= {message["id"] for message in data}
        if name == "values":
            assert {message["id"] for message in data["messages"]} <= seen


def test_the_end_has_the_status_of_the_run(thread, http):
    for graph in ("echo", "failing"):
        *_, (name, data) = stream(thread, http, "values", graph=graph)
        run = http.get(thread.path(f"/runs/{data['run_id']}")).json()
        assert name == "end" and data["status"] == run["status"] == {"echo": "success", "failing": "error"}[graph]


def test_a_checkpoint_has_all_members_and_null_equals_absent(thread, http):
    stream(thread, http, "values")
    first = http.get(thread.path("/state")).json()
    assert first["checkpoint"].keys() == {"thread_id", "checkpoint_ns", "checkpoint_id", "checkpoint_map"}
    assert first["checkpoint"]["checkpoint_map"] is None
    nothing = {"thread_id": thread.id, "checkpoint_ns": None, "checkpoint_id": None, "checkpoint_map": None}
    shown = http.post(thread.path("/state/checkpoint"), json={"checkpoint": nothing, "subgraphs": False}).json()
    assert shown["checkpoint"] == first["checkpoint"]
    for checkpoint in (None, nothing, first["checkpoint"]):
        body = {"assistant_id": "echo", "input": human("more"), "checkpoint": checkpoint}
        assert http.post(thread.path("/runs/wait"), json=body).status_code == 200
    assert http.post(thread.path("/history"), json={"checkpoint": nothing, "before": None}).status_code == 200


def test_cancelling_a_run_that_has_ended_is_not_an_error(thread, http, server):
    *_, (_, end) = stream(thread, http, "values")
    client = get_sync_client(url=server.url)
    for wait in (False, True):
        for action in ("interrupt", "rollback"):
            client.runs.cancel(thread.id, end["run_id"], wait=wait, action=action)
            answer = http.post(
                thread.path(f"/runs/{end['run_id']}/cancel"), params={"wait": int(wait), "action": action}
            )
            assert answer.status_code == 200 and answer.json() == {"run_id": end["run_id"], "status": "success"}
    assert http.get(thread.path(f"/runs/{end['run_id']}")).json()["status"] == "success"
    with pytest.raises(NotFoundError):
        client.runs.cancel(thread.id, str(uuid.uuid4()))


def test_the_stream_of_an_unknown_run_is_not_found(thread, http, server, unknown):
    for path in (
        thread.path(f"/runs/{unknown}/stream"),
        f"/threads/{unknown}/runs/{unknown}/stream",
        f"/runs/{unknown}/stream",
    ):
        answer = http.get(path)
        assert (answer.status_code, answer.json()) == (404, {"detail": "Run not found"})
    with pytest.raises(NotFoundError):
        list(get_sync_client(url=server.url).runs.join_stream(thread.id, unknown))


BAD = [
    ("POST", "/threads/{}/runs", {"assistant_id": "echo", "stream_mode": 7}),
    ("POST", "/threads/{}/runs/stream", {}),
    ("POST", "/threads/{}/runs/crons", {"assistant_id": "echo", "schedule": "never"}),
    ("POST", "/threads/{}/state", {"values": 3}),
    ("POST", "/threads/{}/history", {"limit": -1}),
    ("PATCH", "/threads/{}", {"metadata": 5}),
    ("GET", "/threads/{}/runs?limit=-1", None),
    ("GET", "/threads/{}/runs?status=asleep", None),
    ("GET", "/threads/{0}/runs/{0}/stream?stream_mode=loud", None),
    ("POST", "/threads/{0}/runs/{0}/cancel?action=forget", None),
    ("PATCH", "/assistants/{}", {"metadata": 5}),
    ("POST", "/assistants/{}/versions", {"limit": -1}),
    ("PATCH", "/runs/crons/{}", {"schedule": "never"}),
    ("POST", "/runs/crons", {"assistant_id": "no such graph", "schedule": "never"}),
]


@pytest.mark.parametrize("method, path, body", BAD, ids=lambda each: each if isinstance(each, str) else "")
def test_invalid_requests_are_refused_before_unknown_objects(http, unknown, method, path, body):
    answer = (
        http.request(method, path.format(unknown), json=body)
        if body is not None
        else http.request(method, path.format(unknown))
    )
    assert answer.status_code == 422, answer.text


def test_six_fields_of_a_schedule_end_with_seconds(http):
    body = {"assistant_id": "echo", "schedule": "0 0 1 1 * 30", "input": human("hi"), "enabled": False}
    cron = http.post("/runs/crons", json=body).json()
    fields = http.patch(f"/runs/crons/{cron['cron_id']}", json={"enabled": True}).json()
    http.delete(f"/runs/crons/{cron['cron_id']}")
    assert fields["next_run_date"].endswith("-01-01T00:00:30.000000+00:00")
    for schedule in ("* * *", "0 0 1 1 * 0 2030"):
        assert http.post("/runs/crons", json={**body, "schedule": schedule}).status_code == 422


def test_kwargs_hide_the_namespace_that_states_hide():
    with Server(options=["--no-namespaces-show"]) as server, httpx.Client(base_url=server.url, timeout=60) as http:
        thread = Thread(http)
        body = {"assistant_id": "echo", "input": human("hi"), "config": {"configurable": {"mine": {"config": 1}}}}
        made = http.post(thread.path("/runs"), json=body).json()
        http.get(thread.path(f"/runs/{made['run_id']}/join"))
        for run in (
            made,
            http.get(thread.path(f"/runs/{made['run_id']}")).json(),
            *http.get(thread.path("/runs")).json(),
        ):
            assert run["kwargs"]["config"]["configurable"]["checkpoint_ns"] == ""
            assert run["kwargs"]["config"]["configurable"]["mine"] == {"config": 1}
            assert "assistant:" not in json.dumps(run)
