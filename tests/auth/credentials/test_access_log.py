"""The access log names principals and no credentials."""

from __future__ import annotations

import json


def test_a_line_has_the_principal_and_not_the_token(secured):
    server = secured(config={"log": {"format": "json", "access": True}})
    token = server.user("alice")
    with server.client(token) as client:
        thread = client.post("/threads", json={}).json()["thread_id"]
    with server.client("not.a.token") as client:
        assert client.get(f"/threads/{thread}").status_code == 401
    listed = server.tool("threads", server.store).stdout.split()
    server.stop()
    text = server.log.read_text()
    lines = [json.loads(line) for line in text.splitlines() if line.startswith("{")]
    seen = [line for line in lines if line["message"] == "request ended" and line["path"].startswith("/threads")]
    assert [(line["status"], line.get("principal")) for line in seen] == [(200, listed[3]), (401, None)]
    assert token not in text and token.split(".")[2] not in text and "not.a.token" not in text and "alice" not in text
