"""Helpers for tests of moving data: a graph, conversations of users, comparison of exports."""

from __future__ import annotations

import json
from pathlib import Path

# Appends "heard" to the log, which therefore shows the number of runs.
ECHO = {
    "name": "echo",
    "state": {"log": {"type": "list", "reducer": "add"}},
    "nodes": {"answer": {"kind": "set", "update": {"log": ["heard"]}}},
    "edges": [["__start__", "answer"], ["answer", "__end__"]],
}
NEW_KEY = "ff" * 32
KEYS = {"old": {"id": "2026", "env": "TEST_PRINCIPAL_KEY"}, "new": {"id": "2027", "env": "TEST_NEW_KEY"}}


def configure(server, key: str, *old_keys: str) -> None:
    """Sets the server's keys for its next start."""
    config = json.loads(server.config_file.read_text())
    config["auth"] |= {"key": KEYS[key], "old_keys": [KEYS[name] for name in old_keys]}
    server.config_file.write_text(json.dumps(config))


def rekey(server, *arguments: str, status: int = 0) -> str:
    return server.tool(
        "rekey", "--config", str(server.config_file), "--store", server.store, *arguments, status=status
    ).stdout


def say(client, thread: str, text: str) -> dict:
    """Runs once with the input `text`; returns the thread's values afterwards."""
    body = {"assistant_id": "echo", "input": {"log": [text]}, "stream_resumable": True}
    answer = client.post(f"/threads/{thread}/runs/wait", json=body)
    assert answer.status_code == 200, answer.text
    return answer.json()


def make_thread(client, **body) -> str:
    answer = client.post("/threads", json=body)
    assert answer.status_code == 200, answer.text
    return answer.json()["thread_id"]


def conversation(client, texts: list[str], **body) -> str:
    """Creates a thread with a run for each text, and a branch from its first state."""
    thread = make_thread(client, **body)
    for text in texts:
        say(client, thread, text)
    history = client.post(f"/threads/{thread}/history", json={"limit": 100}).json()
    fork = {"assistant_id": "echo", "input": {"log": ["branch"]}, "checkpoint": history[-2]["checkpoint"]}
    answer = client.post(f"/threads/{thread}/runs/wait", json=fork)
    assert answer.status_code == 200, answer.text
    return thread


def view(client, thread: str) -> dict:
    """Returns a thread as clients see it: record, state, history, branches, runs."""

    def get(path: str, **params):
        answer = client.get(path, params=params)
        assert answer.status_code == 200, f"{path}: {answer.status_code} {answer.text}"
        return answer.json()

    history = client.post(f"/threads/{thread}/history", json={"limit": 1000})
    assert history.status_code == 200, history.text
    return {
        "thread": get(f"/threads/{thread}"), "state": get(f"/threads/{thread}/state"), "history": history.json(),
        "runs": get(f"/threads/{thread}/runs", limit=100),
    }  # fmt: skip


def rows(file: Path) -> list[str]:
    """Returns the lines of an export without its header, which has the time of the export."""
    lines = file.read_text().splitlines()
    assert json.loads(lines[0])["heddle"] == "export"
    return lines[1:]
