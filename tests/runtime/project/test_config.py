"""Keys of a langgraph.json, with native graphs: these need no worker."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import httpx
import pytest
from programs import binary, clean_environment, wait_for

SHOW = {
    "name": "show",
    "state": {"seen": {}},
    "nodes": {"show": {"kind": "set", "update": {"seen": "{{config}}"}}},
    "edges": [["__start__", "show"], ["show", "__end__"]],
}
GRAPH = {"show.json": json.dumps(SHOW)}


def config(**more) -> dict:
    return {"graphs": {"show": "./show.json"}, **more}


def check(folder: Path, config: dict, files=(), options=(), env=None) -> subprocess.CompletedProcess:
    """`heddle serve --check`: its report on a configuration."""
    for name in files:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text("")
    (folder / "langgraph.json").write_text(json.dumps(config))
    return subprocess.run(
        [str(binary()), "serve", "--check", "--config", "langgraph.json", *options],
        cwd=folder, env=clean_environment() | (env or {}), capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip


# ---- parts of the API ---------------------------------------------------------


def test_parts_can_be_left_out(project):
    server = project(
        config=config(
            http={"disable_store": True, "disable_assistants": True, "disable_meta": True, "disable_webhooks": True}
        ),
        files=GRAPH,
    )
    server.ask("POST", "/store/items/search", 404, json={"namespace_prefix": []})
    server.ask("POST", "/assistants/search", 404, json={})
    for path in ("/info", "/docs", "/metrics", "/openapi.json"):
        server.ask("GET", path, 404)
    server.ask("GET", "/ok")
    server.ask("POST", "/threads", json={})
    body = {"assistant_id": "show", "input": {}, "webhook": "http://127.0.0.1:1/x"}
    assert "webhooks are disabled" in server.ask("POST", "/runs/wait", 422, json=body)["detail"]


def test_all_paths_can_have_a_prefix(project):
    server = project(config=config(http={"mount_prefix": "/agents"}), files=GRAPH)
    server.ask("GET", "/ok")
    server.ask("GET", "/info", 404)
    server.ask("GET", "/agentsinfo", 404)
    assert server.ask("GET", "/agents/info")["name"] == "heddle"
    assert server.ask("GET", "/agents/openapi.json")["servers"] == [{"url": "/agents"}]
    assert "seen" in server.ask("POST", "/agents/runs/wait", json={"assistant_id": "show", "input": {}})


def test_cors_is_as_configured(project):
    cors = {
        "allow_origins": ["https://one.example"],
        "allow_origin_regex": r"https://[a-z]+\.two\.example",
        "allow_methods": ["GET", "POST"],
        "allow_headers": ["x-mine"],
        "expose_headers": ["x-yours"],
        "allow_credentials": True,
        "max_age": 17,
    }
    server = project(config=config(http={"cors": cors}), files=GRAPH)

    def preflight(origin: str) -> httpx.Response:
        headers = {"Origin": origin, "Access-Control-Request-Method": "POST", "Access-Control-Request-Headers": "x-a"}
        return httpx.options(server.url + "/threads", headers=headers, timeout=60)

    for origin in ("https://one.example", "https://a.two.example"):
        answer = preflight(origin)
        assert answer.status_code == 204 and answer.headers["access-control-allow-origin"] == origin
        assert answer.headers["access-control-allow-methods"] == "GET, POST"
        assert answer.headers["access-control-allow-headers"] == "x-mine"
        assert answer.headers["access-control-max-age"] == "17"
        assert answer.headers["access-control-allow-credentials"] == "true"
        assert "x-yours" in answer.headers["access-control-expose-headers"]
    for origin in ("https://three.example", "https://a.two.example.org", "https://1.two.example"):
        assert "access-control-allow-origin" not in preflight(origin).headers


def test_graphs_see_the_headers_that_are_included(project):
    headers = {"configurable_headers": {"includes": ["x-app-*", "x-one"], "excludes": ["x-app-not"]}}
    server = project(config=config(http=headers), files=GRAPH)
    with server.client() as client:
        answer = client.post(
            "/runs/wait",
            json={"assistant_id": "show", "input": {}},
            headers={"x-app-a": "1", "x-app-not": "2", "x-one": "3", "x-two": "4", "x-app-token": "5"},
        )
    seen = answer.json()["seen"]
    assert {name: value for name, value in seen.items() if name.startswith("x-")} == {"x-app-a": "1", "x-one": "3"}


def test_variables_reach_the_server_itself(project, mock):
    """A native agent finds the key and the URL of its model in `env`."""
    model = mock({"key": "sk-from-env", "rules": [{"content": "from {{model}}"}]})
    agent = {
        "name": "agent",
        "state": {"messages": {"reducer": "messages"}},
        "nodes": {"model": {"kind": "model", "defaults": {"model_name": "openai:mock"}}},
        "edges": [["__start__", "model"], ["model", "__end__"]],
    }
    server = project(
        config={
            "graphs": {"agent": "./agent.json"},
            "env": {"OPENAI_API_KEY": "sk-from-env", "OPENAI_BASE_URL": model.base_url},
        },
        files={"agent.json": json.dumps(agent)},
    )
    values = server.wait("agent", {"messages": [{"role": "user", "content": "hi"}]})
    assert values["messages"][-1]["content"] == "from mock"


class Sink(BaseHTTPRequestHandler):
    seen: list = []

    def do_POST(self):
        self.rfile.read(int(self.headers["Content-Length"]))
        self.seen.append(dict(self.headers))
        self.send_response(200)
        self.end_headers()

    def log_message(self, *_):
        pass


def test_webhooks_have_the_headers(project):
    sink = HTTPServer(("127.0.0.1", 0), Sink)
    threading.Thread(target=sink.serve_forever, daemon=True).start()
    try:
        headers = {"X-Token": "Bearer ${{ env.LG_WEBHOOK_TOKEN }}", "X-Plain": "p"}
        token = "quiet-webhook-token"  # long: two letters may be in the name of a temporary folder
        server = project(config=config(webhooks={"headers": headers}, env={"LG_WEBHOOK_TOKEN": token}), files=GRAPH)
        body = {"assistant_id": "show", "input": {}, "webhook": f"http://127.0.0.1:{sink.server_port}/hook"}
        server.ask("POST", "/runs/wait", json=body)
        got = wait_for(lambda: Sink.seen and Sink.seen[0], what="a webhook")
        assert got["X-Token"] == f"Bearer {token}" and got["X-Plain"] == "p"
        assert token not in server.log.read_text()
    finally:
        sink.shutdown()
        sink.server_close()


def test_expiry_is_as_configured(project):
    ttl = {"checkpointer": {"ttl": {"strategy": "delete", "default_ttl": 0.02, "sweep_interval_minutes": 0.002}}}
    server = project(config=config(**ttl), files=GRAPH)
    thread = server.ask("POST", "/threads", json={})["thread_id"]
    wait_for(
        lambda: httpx.get(f"{server.url}/threads/{thread}", timeout=60).status_code == 404, what="the thread's end"
    )


# ---- messages -------------------------------------------------------------------


def test_unknown_keys_give_a_warning(project):
    server = project(config=config(grafs={}, python_version="3.12", http={"disable_stores": True}, ui={}), files=GRAPH)
    said = server.log.read_text()
    assert 'ignored member "grafs"; did you mean "graphs"?' in said
    assert 'ignored member "http.disable_stores"; did you mean "http.disable_store"?' in said
    assert "ui is not used" in said
    assert "python_version" not in said


BARE = Path(sys.base_prefix) / "bin" / "python3"

MISTAKES = {
    "no such file": ({"graphs": {"a": "./src/agnt.py:graph"}}, ["src/agent.py"], [], 'did you mean "agent.py"?'),
    "no such folder": ({"graphs": {"a": "./scr/agent.py:graph"}}, ["src/agent.py"], [], "does not exist"),
    "no name": ({"graphs": {"a": "./agent.py"}}, ["agent.py"], [], '"./agent.py:graph"'),
    "no language": ({"graphs": {"a": "./agent.rb:graph"}}, [], [], "has an unknown language"),
    "no python": ({"graphs": {"a": "./a.py:g"}}, ["a.py"], ["--runtime-python", "/no/python"], "is not a program"),
    "not a python": ({"graphs": {"a": "./a.py:g"}}, ["a.py"], ["--runtime-python", "/bin/true"], "does not work"),
    "no package": (
        {"graphs": {"a": "./a.py:g"}},
        ["a.py"],
        ["--runtime-python", str(BARE)],
        '-m pip install "heddle[runtime]"',
    ),
    "no npm package": ({"graphs": {"a": "./a.ts:g"}}, ["a.ts"], [], "npm install heddle"),
    "encryption": ({"encryption": {"path": "./e.py:e"}}, ["e.py"], [], "does not encrypt"),
    "env": ({"env": {"A B": "x"}}, [], [], "not a variable name"),
    "webhook": ({"webhooks": {"headers": {"A": "${{ env.LG_WEBHOOK_NONE }}"}}}, [], [], "LG_WEBHOOK_NONE is not set"),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_mistakes_are_explained(name, tmp_path):
    given, files, options, says = MISTAKES[name]
    done = check(tmp_path, given, files, options, env={"VIRTUAL_ENV": ""})
    assert done.returncode == 2 and says in done.stderr, done.stderr
    assert done.stderr.startswith("heddle serve: ") and done.stderr.count("\n") == 1


VARIABLES = {
    "LANGGRAPH_HTTP": ('{"disable_store": true}', '"http" in the langgraph.json'),
    "LANGGRAPH_AUTH": ('{"path": "./auth.py:auth"}', '"auth" in the langgraph.json'),
    "LANGGRAPH_AES_KEY": ("0123456789abcdef", "does not encrypt"),
    "LANGGRAPH_CONFIG": (
        '{"a": {"configurable": {"api_key": "sk-0123456789abcdef0123456789"}}}',
        "keys are not stored",
    ),
}


@pytest.mark.parametrize("name", VARIABLES)
def test_unsupported_variables_are_rejected(name, tmp_path):
    """Variables of LangGraph's own servers; in the environment and in the file that `env` names."""
    value, says = VARIABLES[name]
    given = {"graphs": {"a": "./a.py:g"}, "env": ".env"}
    (tmp_path / ".env").write_text("A=1\n")
    done = check(tmp_path, given, ["a.py"], env={name: value})
    assert done.returncode == 2 and name in done.stderr and says in done.stderr, done.stderr
    assert value not in done.stderr and "sk-" not in done.stderr
    (tmp_path / ".env").write_text(f"{name}='{value}'\n")
    done = check(tmp_path, given, ["a.py"])
    assert done.returncode == 2 and says in done.stderr, done.stderr


@pytest.mark.parametrize("value", ["[]", "{", '{"a": 1}'])
def test_an_invalid_langgraph_config_is_rejected(value, tmp_path):
    done = check(tmp_path, {"graphs": {"a": "./a.py:g"}}, ["a.py"], env={"LANGGRAPH_CONFIG": value})
    assert done.returncode == 2 and "LANGGRAPH_CONFIG: " in done.stderr, done.stderr


def test_a_langgraph_js_below_1_0_is_named(tmp_path):
    for name, text in {
        "heddle": {"version": "0.1.0", "bin": {"heddle-runtime": "main.js"}},
        "@langchain/langgraph": {"version": "0.4.9"},
    }.items():
        package = tmp_path / "node_modules" / name
        package.mkdir(parents=True)
        (package / "package.json").write_text(json.dumps(text))
        (package / "main.js").touch()
    done = check(tmp_path, {"graphs": {"a": "./a.ts:g"}}, ["a.ts"])
    assert done.returncode == 2 and "@langchain/langgraph" in done.stderr, done.stderr
    assert "0.4.9" in done.stderr and "1.0 or newer" in done.stderr and "npm install" in done.stderr


def test_a_python_langgraph_below_1_0_is_named(tmp_path):
    """A package of another version on the path of the group's own Python."""
    for name in ("langgraph", "langgraph-0.6.11.dist-info"):
        (tmp_path / "old" / name).mkdir(parents=True)
    (tmp_path / "old/langgraph/__init__.py").touch()
    (tmp_path / "old/langgraph-0.6.11.dist-info/METADATA").write_text("Name: langgraph\nVersion: 0.6.11\n")
    env = {"PYTHONPATH": str(tmp_path / "old"), "VIRTUAL_ENV": ""}
    done = check(tmp_path, {"graphs": {"a": "./a.py:g"}}, ["a.py"], ["--runtime-python", sys.executable], env=env)
    assert done.returncode == 2 and "older than 1.0" in done.stderr and "langgraph>=1.0" in done.stderr, done.stderr


def test_an_invalid_line_of_env_is_named(tmp_path):
    (tmp_path / ".env").write_text("A=1\nwrong secret\n")
    done = check(tmp_path, {"env": ".env"})
    assert done.returncode == 2 and ".env: line 2: not NAME=value" in done.stderr and "secret" not in done.stderr


def test_a_virtual_environment_is_found(tmp_path):
    """.venv and venv of the project, before any other Python but the active one."""
    for place, env in ((".venv", None), ("venv", None), ("elsewhere", str(tmp_path / "elsewhere"))):
        program = tmp_path / place / "bin" / "python"
        program.parent.mkdir(parents=True)
        program.symlink_to("/bin/true")
        done = check(tmp_path, {"graphs": {"a": "./a.py:g"}}, ["a.py"], env={"VIRTUAL_ENV": env or ""})
        assert f"{program} does not work" in done.stderr, done.stderr
        os.unlink(program)
