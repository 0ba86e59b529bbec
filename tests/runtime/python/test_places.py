"""Runs from the checkpoints of subgraphs; long responses on a connection that has carried a stream."""

from __future__ import annotations

import json
import re
import socket
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from programs import wait_for

PROJECT = Path(__file__).parent / "project"


@pytest.mark.parametrize("shown", ["true", "false"])
def test_runs_from_a_subgraph_checkpoint(project, shown):
    server = project(folder=PROJECT, env={"HEDDLE_NAMESPACES_SHOW": shown})
    thread = server.thread()
    server.wait("nested", {"ask": True}, thread)
    middle = server.state(thread, subgraphs="true")["tasks"][0]["state"]
    place = middle["tasks"][0]["state"]["checkpoint"]
    wanted = {"checkpoint_ns": place["checkpoint_ns"]}
    history = server.ask("POST", f"/threads/{thread}/history", json={"limit": 10, "checkpoint": wanted})
    assert [each["next"] for each in history] == [["step"], ["first"], ["__start__"]]
    for each in history:
        events = server.stream(
            "nested", None, thread, checkpoint=each["checkpoint"], stream_mode=["updates"], stream_subgraphs=True
        )
        names = [name for name, data, _ in events if name.startswith("updates") and "__interrupt__" in data]
        assert any(name.count("|") == 2 for name in names), events
        assert not [name for name, *_ in events if name == "error"]
    values = server.wait("nested", None, thread, command={"resume": "well"})
    assert values["trail"][-2:] == ["inner well", "middle after"]


def test_checkpoint_of_a_subgraph_needs_its_map(project):
    server = project(folder=PROJECT)
    thread = server.thread()
    server.wait("nested", {"ask": True}, thread)
    place = server.state(thread, subgraphs="true")["tasks"][0]["state"]["checkpoint"]
    body = {"assistant_id": "nested", "checkpoint": {**place, "checkpoint_map": None}}
    server.ask("POST", f"/threads/{thread}/runs/wait", status=422, json=body)


def request(method: str, path: str, body: dict | None = None) -> bytes:
    text = json.dumps(body).encode() if body is not None else b""
    head = f"{method} {path} HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n"
    return f"{head}content-length: {len(text)}\r\n\r\n".encode() + text


def until(peer: socket.socket, end: bytes) -> bytes:
    found = b""
    while not found.endswith(end):
        part = peer.recv(65536)
        assert part, found
        found += part
    return found


def test_long_answer_after_a_stream(project):
    """The kernel buffers little of a stream, so that slow readers are detected; it buffers more of
    a response."""
    server = project(folder=PROJECT, options=["--slow-timeout", "3000"])
    thread = server.thread()
    server.wait("sends", {"words": ["w" * 150_000]}, thread)
    where = urlsplit(server.url)
    with socket.socket() as peer:
        peer.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        peer.settimeout(60)
        peer.connect((where.hostname, where.port))
        peer.sendall(request("POST", "/runs/stream", {"assistant_id": "slow", "input": {"seconds": 0}}))
        assert b"event: end" in until(peer, b"\r\n0\r\n\r\n")
        peer.sendall(request("GET", f"/threads/{thread}/state"))

        def is_answered():  # without a reader; the one request is that for the metrics
            with server.client() as client:
                return re.search(r"^heddle_http_requests 1$", client.get("/metrics").text, re.MULTILINE)

        wait_for(lambda: peer.recv(1, socket.MSG_PEEK), what="the answer to begin")
        wait_for(is_answered, what="the answer to be sent")
