"""The SDK's client without a URL, in graphs and routes of both languages: it acts as the caller."""

from __future__ import annotations

import contextlib
import subprocess
from pathlib import Path

import httpx
import pytest
from project import Project

ECHO = Path(__file__).parent / "projects" / "echo.json"

PYTHON = """
from typing import TypedDict
from langgraph.graph import START, StateGraph
from langgraph_sdk import get_client
from starlette.applications import Starlette
from starlette.responses import JSONResponse
from starlette.routing import Route

client = get_client()

class State(TypedDict, total=False):
    found: list
    said: str
    threads: list

async def look(state):
    found = [each["thread_id"] for each in await client.threads.search(limit=100)]
    said = ""
    async for part in client.runs.stream(None, "echo", input={"messages": [{"role": "user", "content": "inner"}]}, stream_mode="values"):
        if part.event == "values":
            said = part.data["messages"][-1]["content"]
    return {"found": found, "said": said}

graph = StateGraph(State).add_node("look", look).add_edge(START, "look").compile()

async def mine(request):
    return JSONResponse([each["thread_id"] for each in await client.threads.search(limit=100)])

app = Starlette(routes=[Route("/mine", mine)])
"""

JS = """
import { Annotation, START, StateGraph } from "@langchain/langgraph";
import { Client } from "@langchain/langgraph-sdk";
import { Hono } from "hono";

const client = new Client({ callerOptions: { maxRetries: 0 } });
const State = Annotation.Root({ found: Annotation<string[]>, said: Annotation<string> });
const ids = async () => (await client.threads.search({ limit: 100 })).map(({ thread_id }) => thread_id);

const look = async () => {
  const found = await ids();
  let said = "";
  const input = { messages: [{ role: "user", content: "inner" }] };
  for await (const { event, data } of client.runs.stream(null, "echo", { input, streamMode: "values" })) {
    if (event === "values") said = (data as { messages: { content: string }[] }).messages.at(-1)!.content;
  }
  return { found, said };
};

export const graph = new StateGraph(State).addNode("look", look).addEdge(START, "look").compile();
export const app = new Hono().get("/mine", async (c) => c.json(await ids()));
"""

SOURCES = {"python": ("own.py", PYTHON), "js": ("own.mts", JS)}


@pytest.fixture(scope="module")
def served(guarded_module, language):
    name, text = SOURCES[language]
    http = {"app": f"./{name}:app", "enable_custom_route_auth": True}
    return guarded_module(language, files={name: text}, graphs={"look": f"./{name}:graph"}, config={"http": http})


def test_a_run_calls_the_server_as_its_user(served):
    ada, bob = served.as_user("t-ada"), served.as_user("t-bob")
    hers, his = ada.thread(), bob.thread()
    for user, own, other in ((ada, hers, his), (bob, his, hers)):
        values = user("POST", f"/threads/{own}/runs/wait", json={"assistant_id": "look", "input": {}})
        assert "found" in values, values
        assert own in values["found"] and other not in values["found"], values
        assert values["said"] == "You said: inner"


def test_a_route_calls_the_server_as_its_caller(served):
    ada, bob = served.as_user("t-ada"), served.as_user("t-bob")
    hers, his = ada.thread(), bob.thread()
    found = ada("GET", "/mine")
    assert hers in found and his not in found
    assert his in bob("GET", "/mine")


def test_the_credential_ends_with_the_call_and_is_not_stored(served):
    ada = served.as_user("t-ada")
    ada("POST", "/runs/wait", json={"assistant_id": "look", "input": {}})
    assert b"heddle-run-token" not in served.database() and "heddle-run-token" not in served.log.read_text()
    made_up = served.as_user(None, headers={"heddle-run-token": "0" * 64})
    made_up("POST", "/threads/search", status=401, json={})
    both = served.as_user("t-ada", headers={"heddle-run-token": "short"})
    both("POST", "/threads/search", status=401, json={})


@pytest.mark.parametrize("runtime", SOURCES)
def test_it_needs_no_credential_without_authentication(project, runtime):
    name, text = SOURCES[runtime]
    config = {
        "graphs": {"look": f"./{name}:graph", "echo": "./echo.json"},
        "http": {"app": f"./{name}:app", "mount_prefix": "/below"},
    }
    server = project(config=config, files={name: text, "echo.json": ECHO.read_text()})
    with httpx.Client(base_url=f"{server.url}/below", timeout=120) as client:
        thread = client.post("/threads", json={}).json()["thread_id"]
        values = client.post("/runs/wait", json={"assistant_id": "look", "input": {}}).json()
        assert thread in values["found"] and values["said"] == "You said: inner"
        assert thread in client.get("/mine").json()


class Encrypted(Project):
    """A server with a certificate that no machine trusts."""

    @property
    def url(self) -> str:
        return f"https://127.0.0.1:{self.port}"

    def start(self) -> Encrypted:
        name = ["-subj", "/CN=elsewhere.example", "-days", "1", "-nodes"]
        files = ["-keyout", str(self.folder / "key.pem"), "-out", str(self.folder / "cert.pem")]
        command = [
            "openssl",
            "req",
            "-x509",
            "-newkey",
            "ec",
            "-pkeyopt",
            "ec_paramgen_curve:prime256v1",
            *name,
            *files,
        ]
        subprocess.run(command, check=True, capture_output=True)
        self.options += ["--tls-certificate", str(self.folder / "cert.pem"), "--tls-key", str(self.folder / "key.pem")]
        return super().start()

    def answers(self) -> bool:
        with contextlib.suppress(httpx.HTTPError):
            return httpx.get(f"{self.url}/ok", verify=False).status_code == 200
        return False


@pytest.mark.parametrize("runtime", SOURCES)
def test_it_reaches_a_server_with_tls(runtime):
    name, text = SOURCES[runtime]
    config = {"graphs": {"look": f"./{name}:graph", "echo": "./echo.json"}}
    server = Encrypted(config=config, files={name: text, "echo.json": ECHO.read_text()}).start()
    try:
        with httpx.Client(base_url=server.url, timeout=120, verify=False) as client:
            values = client.post("/runs/wait", json={"assistant_id": "look", "input": {}}).json()
        assert values.get("said") == "You said: inner", values
    finally:
        server.stop()
