"""Workers that violate the protocol, and versions that do not match: one table for
lib/fake_worker.py each."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
from programs import wait_for

HERE = Path(__file__).resolve().parent
FAKE = HERE.parent / "lib" / "fake_worker.py"
DONE = {"answer": {"status": "done"}, "blobs": ["{}"]}


@pytest.fixture
def served(project, tmp_path):
    """served(table, *options): a server whose Python workers follow the table."""

    def serve(table: dict, *options: str):
        program = tmp_path / "python"
        program.write_text(
            f"#!/bin/sh\nexport FAKE_WORKER='{json.dumps(table)}'\n"
            f'[ "$1" = -m ] && exec {sys.executable} {FAKE}\nexec {sys.executable} "$@"\n'
        )
        program.chmod(0o755)
        files = {"chat.py": "graph = None\n"}
        config = {"dependencies": ["."], "graphs": {"chat": "./chat.py:graph"}}
        return project(config=config, files=files, options=["--runtime-python", str(program), *options])

    return serve


def ready(**ops) -> dict:
    return {"ready": {"graphs": {"chat": {"structure": None}}}, "ops": ops}


def fails(server) -> str:
    """A run fails; returns the reason. The server continues."""
    ended = server.wait("chat", {"messages": []})
    assert server.ask("GET", "/ok") == {"ok": True}
    return ended["__error__"]["message"]


def test_a_version_that_does_not_fit(served):
    server = served({**ready(), "hello": {"version": "9.9.9"}}, "--runtime-start-timeout", "15")
    # then the reason of the missing worker is known
    wait_for(lambda: "9.9.9" in server.log.read_text(), what="the log")
    said = fails(server)
    assert "9.9.9" in said, said


def test_a_protocol_that_does_not_fit(served):
    server = served({**ready(), "hello": {"protocol": 7}}, "--runtime-start-timeout", "15")
    wait_for(lambda: "protocol 7" in server.log.read_text(), what="the log")
    assert "protocol" in fails(server)


def test_a_langgraph_below_1_0_is_refused_once(served):
    server = served({**ready(), "hello": {"langgraph": "0.6.11"}})  # the start timeout is not waited for
    said = fails(server)
    assert "LangGraph is 0.6.11" in said and "1.0 or newer" in said and "langgraph>=1.0" in said
    assert fails(server) == said
    log = server.log.read_text()
    assert log.count("not restarted") == 1, log
    assert server.workers() == []


@pytest.mark.parametrize("start", ["exit", "garbage", "silent", "hang", "not_ready"])
def test_one_that_never_is_ready(served, start):
    server = served({**ready(), "start": start}, "--runtime-start-timeout", "2")
    assert fails(server)


@pytest.mark.parametrize("what", ["garbage", "close", "exit", "kill"])
def test_one_that_breaks_in_a_run(served, what):
    server = served(ready(run={"do": what}))
    assert "worker" in fails(server)


def test_one_that_answers_unknown_calls(served):
    """A response to an unknown call is ignored or ends the worker: the run is not affected."""
    server = served(ready(run=[{"do": "stray"}, DONE]))
    ended = server.wait("chat", {"messages": []})
    assert ended == {} or "worker" in ended["__error__"]["message"]
    assert server.ask("GET", "/ok") == {"ok": True}


@pytest.mark.parametrize(
    "steps",
    [
        [{"piece": {"mode": "nonsense", "ns": ""}, "blobs": ["{}"]}, DONE],
        [{"piece": {"mode": "values"}, "blobs": ["{}"]}, DONE],
        [{"piece": {"mode": "values", "ns": ""}, "blobs": ["no JSON"]}, DONE],
        [{"piece": {"mode": "values", "ns": ""}}, DONE],
        [{"piece": {"mode": 7, "ns": {"a": 1}}, "blobs": ["{}"]}, DONE],
        [{"piece": {"mode": "debug", "ns": ""}, "blobs": ["[]"]}, DONE],
        [{"piece": {"mode": "messages", "ns": "a:b|c"}, "blobs": ["[null, 3]"]}, DONE],
    ],
)
def test_invalid_chunks(served, steps):
    """The run ends in either state, and clients get JSON."""
    server = served(ready(run=steps))
    told = server.stream(
        "chat", {"messages": []}, stream_mode=["values", "messages", "messages-tuple", "debug", "updates"]
    )
    assert told[-1][0] in ("end", "error")
    assert server.ask("GET", "/ok") == {"ok": True}


@pytest.mark.parametrize(
    "answer", [{"answer": {}}, {"answer": {"status": "perhaps"}}, {"answer": {"status": "done"}, "blobs": ["no JSON"]},
               {"answer": {"status": "failed"}}, {"answer": {"status": "failed", "error": 7}}, {"error": {"type": "Odd", "message": "why not"}}]
)  # fmt: skip
def test_invalid_responses(served, answer):
    server = served(ready(run=answer))
    ended = server.wait("chat", {"messages": []})
    assert isinstance(ended, dict | None)
    assert server.ask("GET", "/ok") == {"ok": True}


@pytest.mark.parametrize(
    "call",
    [
        {"op": "put", "ns": "", "id": "x"},
        {
            "op": "put",
            "ns": "",
            "id": "x",
            "checkpoint": "[]",
            "metadata": "7",
            "new_versions": [],
            "values": [["a", "hd1", 3]],
        },
        {"op": "writes", "ns": "", "id": "", "task_id": 5},
        {"op": "get", "ns": None, "id": 3},
        {"op": "list", "limit": -5, "before": {}},
        {"op": "items", "ops": [{"op": "explode"}]},
        {"op": "items", "ops": "none"},
        {"op": "history", "channels": "x"},
        {"op": "nothing"},
        {"op": "get", "ns": "", "id": "", "call": 4711},
        {"op": 5},
    ],
)
def test_invalid_calls(served, call):
    """The worker gets an error, the run gets its end, and nothing was stored."""
    server = served(ready(run=[{"call": call}, DONE]))
    thread = server.thread()
    server.wait("chat", {"messages": []}, thread)
    assert server.ask("GET", "/ok") == {"ok": True}
    assert server.ask("POST", f"/threads/{thread}/history", json={}) == []
