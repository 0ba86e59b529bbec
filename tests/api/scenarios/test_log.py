"""Server log: text or JSON, the access log, level debug."""

from __future__ import annotations

import json
import uuid

import httpx
import pytest
from server import Server

pytestmark = pytest.mark.beyond_peer("its log is another")

SECRET = "sk-never-in-a-log"


def logged(*options: str) -> tuple[list[str], str, str]:
    """The log lines of a server after a request with secrets, a run, and a 404."""
    server = Server(options=list(options))
    try:
        with server, httpx.Client(base_url=server.url, timeout=60, headers={"x-request-id": "my-id"}) as client:
            thread = client.post("/threads", json={}).json()["thread_id"]
            body = {"assistant_id": "echo", "input": {"messages": [{"role": "user", "content": SECRET}]}}
            assert client.post(f"/threads/{thread}/runs/wait", json=body).status_code == 200
            headers = {"Authorization": f"Bearer {SECRET}", "x-api-key": SECRET}
            missing = f"/threads/{uuid.uuid4()}"
            assert client.get(missing, params={"token": SECRET}, headers=headers).status_code == 404
            server.stop()
            text = server.log.read_text()
    finally:
        server.remove()
    assert SECRET not in text
    return (
        [line for line in text.splitlines() if " debug " in line or " info " in line or line[:1] == "{"],
        thread,
        missing,
    )


def members(lines: list[str], message: str) -> list[dict]:
    return [entry for entry in map(json.loads, lines) if entry["message"] == message]


def test_json_lines_are_objects_with_an_access_log():
    lines, thread, missing = logged("--log-format", "json", "--log-access")
    assert lines and all({"time", "level", "area", "message"} <= json.loads(line).keys() for line in lines)
    ended = members(lines, "request ended")
    assert [(entry["method"], entry["path"], entry["status"]) for entry in ended if entry["request_id"] == "my-id"] == [
        ("POST", "/threads", 200),
        ("POST", f"/threads/{thread}/runs/wait", 200),
        ("GET", missing, 404),
    ]
    for entry in ended:
        assert entry["level"] == "info" and entry["area"] == "access" and entry["peer"] == "127.0.0.1"
        assert entry["bytes"] > 0 and entry["duration_us"] >= 0 and "principal" not in entry


def test_text_lines_have_the_same_members():
    lines, _, missing = logged("--log-access")
    assert any(f"info access: request ended method=GET path={missing} status=404 bytes=" in line for line in lines)


def test_the_access_log_is_off_by_default():
    lines, _, _ = logged()
    assert not any("request ended" in line for line in lines)


def test_debug_follows_requests_and_runs():
    lines, thread, _ = logged("--log-level", "debug", "--log-format", "json")
    assert [entry["path"] for entry in members(lines, "request started") if entry["request_id"] == "my-id"][
        0
    ] == "/threads"
    life = [(entry["message"], entry["status"]) for entry in map(json.loads, lines) if entry.get("thread_id") == thread]
    assert [message for message, _ in life] == ["run admitted", "run started", "run ended"]
    assert life[-1] == ("run ended", "success")
