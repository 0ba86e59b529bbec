"""Real MCP servers: server-everything and files; sessions, lost sessions, and cancelling."""

from __future__ import annotations

import json
import re
import subprocess

import httpx
import pytest
from mcp_calls import call, graph, results
from programs import binary, clean_environment, free_port, wait_for

EVERYTHING = "node_modules/@modelcontextprotocol/server-everything/dist/index.js"
FILES = "node_modules/@modelcontextprotocol/server-filesystem/dist/index.js"


def ask(server, graph_name: str, url: str, **options):
    return server.wait(graph_name, {"messages": [{"role": "user", "content": "go"}]},
                       configurable={"mcp_config": {"servers": [{"name": "s", "url": url, **options}]}})  # fmt: skip


class Bridge:
    def __init__(self, started):
        self.url = f"http://127.0.0.1:{started.found.group(1)}"

    def seen(self, method: str | None = None) -> list[dict]:
        lines = httpx.get(self.url + "/seen", timeout=60).json()
        return [line for line in lines if method is None or line.get("method") == method]

    def ended(self) -> list[dict]:
        return [line for line in self.seen() if line.get("ended")]

    def forget(self) -> None:
        httpx.post(self.url + "/forget", timeout=60)


@pytest.fixture
def bridge(process, node_folder):
    def start(program: str, *arguments: str) -> Bridge:
        command = ["node", "mcp/bridge.mjs", "node", str(node_folder / program), *arguments]
        return Bridge(process(command, ready=r"^ready (\d+)", cwd=node_folder))

    return start


@pytest.fixture
def everything(process, node_folder):
    """The server's streamable HTTP transport."""
    port = free_port()
    started = process(["node", EVERYTHING, "streamableHttp"], ready="listening on port", cwd=node_folder,
                      env={"PORT": str(port)})  # fmt: skip
    started.url = f"http://127.0.0.1:{port}/mcp"
    return started


def sessions_of(started) -> int:
    return sum("Session initialized with ID" in line for line in started.lines)


def test_tools_of_every_kind(heddle, everything):
    server = heddle(
        graphs={
            "caller": graph(
                call("echo", "c1", message="hello"),
                call("get-sum", "c2", a=2, b=3),
                call("get-tiny-image", "c3"),
                call("get-structured-content", "c4", location="New York"),
                call("get-resource-reference", "c5", resourceType="Text", resourceId=1),
                call("get-resource-links", "c6", count=2),
                call("no-such-tool", "c7"),
                call("echo", "c8"),
            )
        }
    )
    found = results(ask(server, "caller", everything.url))
    assert found["c1"]["content"] == "Echo: hello" and found["c1"]["status"] == "success"
    assert "5" in found["c2"]["content"]
    image = [block for block in found["c3"]["content"] if block["type"] == "image"]
    assert image[0]["mime_type"] == "image/png" and len(image[0]["base64"]) > 100
    assert json.loads(found["c4"]["content"]) == found["c4"]["artifact"]["structured_content"]
    assert isinstance(found["c5"]["content"], str) and "Resource 1" in found["c5"]["content"]
    assert found["c6"]["content"].count("demo://resource") == 2
    assert found["c7"]["status"] == "error" and "echo" in found["c7"]["content"]
    assert found["c8"]["status"] == "error" and "message" in found["c8"]["content"]
    # All calls used one session, which has ended. (The server's output may lag behind its
    # responses.)
    wait_for(lambda: any("session termination" in line for line in everything.lines), what="the end of the session")
    assert sessions_of(everything) == 1


def test_lists_are_kept_and_sessions_are_not(heddle, bridge):
    files = bridge(EVERYTHING, "stdio")
    server = heddle(graphs={"caller": graph(call("echo", message="x"), again=[call("echo", "c2", message="y")])})
    for _ in range(2):
        found = results(ask(server, "caller", files.url))
        assert [found[key]["content"] for key in ("c1", "c2")] == ["Echo: x", "Echo: y"]
    assert len(files.seen("initialize")) == 2
    assert len(files.seen("tools/list")) == 1
    assert len(files.seen("tools/call")) == 4
    # All calls of a run use the run's session.
    calls = [line["session"] for line in files.seen("tools/call")]
    assert calls[0] == calls[1] != calls[2] == calls[3]
    wait_for(lambda: len(files.ended()) == 2, what="the ends of both sessions")


def test_files(heddle, bridge, tmp_path):
    folder = tmp_path.resolve()
    (folder / "note.txt").write_text("grün & 世界\n")
    files = bridge(FILES, str(folder))
    server = heddle(
        graphs={
            "caller": graph(
                call("read_text_file", "c1", path=str(folder / "note.txt")),
                call("write_file", "c2", path=str(folder / "new.txt"), content="made"),
                call("read_text_file", "c3", path="/etc/passwd"),
            )
        }
    )
    found = results(ask(server, "caller", files.url))
    assert found["c1"]["content"] == "grün & 世界\n"
    assert found["c2"]["status"] == "success" and (folder / "new.txt").read_text() == "made"
    assert found["c3"]["status"] == "error" and "denied" in found["c3"]["content"]
    assert len(files.seen("initialize")) == 1


def test_only_the_allowed_tools(heddle, bridge):
    server = heddle(graphs={"caller": graph(call("echo", message="x"), call("get-sum", "c2", a=1, b=1))})
    found = results(ask(server, "caller", bridge(EVERYTHING, "stdio").url, tools=["echo"]))
    assert found["c1"]["status"] == "success"
    assert found["c2"]["status"] == "error" and "get-sum" in found["c2"]["content"]


def test_a_lost_session_is_reopened(heddle, bridge):
    """The server loses its sessions between two calls of a run."""
    server = heddle(
        graphs={
            "caller": {
                **(declared := graph(call("echo", message="x"))),
                "nodes": {
                    **declared["nodes"],
                    "model": {"kind": "script", "replies": [
                        {"when": {"@eq": ["{{messages[-1].type}}", "human"]}, "tool_calls": [call("echo", message="x")]},
                        {"when": {"@eq": ["{{messages[-1].tool_call_id}}", "c1"]}, "tool_calls": [call("echo", "c2", message="y")]},
                        {"content": "done"},
                    ]},
                    "lose": {"kind": "http", "url": "{{config.forget}}", "method": "POST"},
                },
                "edges": [*declared["edges"][:2], ["act", "lose"], ["lose", "model"]],
            }
        }
    )  # fmt: skip
    files = bridge(EVERYTHING, "stdio")
    values = server.wait("caller", {"messages": [{"role": "user", "content": "go"}]},
                         configurable={"mcp_config": {"url": files.url}, "forget": files.url + "/forget"})  # fmt: skip
    found = results(values)
    assert [found[key]["content"] for key in ("c1", "c2")] == ["Echo: x", "Echo: y"]
    assert len(files.seen("initialize")) == 2
    assert len(files.seen("tools/call")) == 2


def test_cancelling_reaches_the_server(heddle, bridge):
    everything = bridge(EVERYTHING, "stdio")
    server = heddle(graphs={"caller": graph(call("trigger-long-running-operation", duration=600, steps=2))})
    thread = server.thread()
    run = server.ask("POST", f"/threads/{thread}/runs", json={
        "assistant_id": "caller", "input": {"messages": [{"role": "user", "content": "go"}]},
        "config": {"configurable": {"mcp_config": {"url": everything.url}}},
    })["run_id"]  # fmt: skip
    started = wait_for(lambda: everything.seen("tools/call"), what="the call")
    server.ask("POST", f"/threads/{thread}/runs/{run}/cancel", params={"wait": "true"})
    cancelled = wait_for(lambda: everything.seen("notifications/cancelled"), what="the notification")
    assert cancelled[0]["params"]["requestId"] == started[0]["id"]
    wait_for(everything.ended, what="the end of the session")


def test_an_unreachable_server_is_left_out(heddle, bridge):
    here, nowhere = bridge(EVERYTHING, "stdio").url, f"http://127.0.0.1:{free_port()}"
    server = heddle(graphs={"caller": graph(call("echo", message="x"))})
    events = server.stream("caller", {"messages": [{"role": "user", "content": "go"}]}, stream_mode=["custom", "values"],
                           configurable={"mcp_config": [{"name": "gone", "url": nowhere}, {"name": "here", "url": here}]})  # fmt: skip
    problems = [data for event, data, _ in events if event == "custom"]
    assert len(problems) == 1 and problems[0]["source"] == "mcp"
    assert re.match("gone: ", problems[0]["message"]) and "here" not in problems[0]["message"]
    assert results([data for event, data, _ in events if event == "values"][-1])["c1"]["content"] == "Echo: x"


def test_an_elicitation_interrupts_the_run(heddle, bridge):
    """A legacy server sends an elicitation during a call: the call is repeated with the user's
    input."""
    everything = bridge(EVERYTHING, "stdio")
    server = heddle(graphs={"caller": graph(call("trigger-elicitation-request"))})
    thread, configurable = server.thread(), {"mcp_config": {"url": everything.url}}
    values = server.wait("caller", {"messages": [{"role": "user", "content": "go"}]}, thread=thread,
                         configurable=configurable)  # fmt: skip
    question = values["__interrupt__"][0]["value"]
    assert question["type"] == "mcp_input" and question["tool"] == "trigger-elicitation-request"
    assert "requestedSchema" in question["requests"]["elicitation"]["params"]
    values = server.wait("caller", thread=thread, configurable=configurable,
                         command={"resume": {"action": "accept", "content": {"name": "Ada", "check": True}}})  # fmt: skip
    found = results(values)["c1"]
    assert found["status"] == "success" and "Ada" in found["content"]
    # The first call also got a response: no request is pending at the server.
    assert len(everything.seen("tools/call")) == 2


def test_a_recorded_run_is_replayed_without_the_server(heddle, process, node_folder):
    port = free_port()
    everything = process(["node", EVERYTHING, "streamableHttp"], ready="listening on port", cwd=node_folder,
                         env={"PORT": str(port)})  # fmt: skip
    declared = graph(
        call("echo", message="x"), call("get-sum", "c2", a=2, b=3), again=[call("echo", "c3", message="y")]
    )
    server = heddle(graphs={"caller": declared}, config={"record": True})
    thread, configurable = server.thread(), {"mcp_config": {"url": f"http://127.0.0.1:{port}"}}
    for _ in range(2):
        values = server.wait("caller", {"messages": [{"role": "user", "content": "go"}]}, thread=thread,
                             configurable=configurable)  # fmt: skip
        assert results(values)["c3"]["content"] == "Echo: y"
    server.stop()
    everything.stop()
    done = subprocess.run(
        [str(binary()), "replay", thread, "--store", f"sqlite:{server.folder}/heddle.db", "--graph", f"caller={server.graphs['caller']}"],
        env=clean_environment(), text=True, capture_output=True, timeout=120,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.endswith("2 runs, 0 differ\n"), done.stdout
