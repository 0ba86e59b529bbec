"""A real Chroma, and a graph whose tools search documents."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import httpx
import pytest
from programs import Heddle, Mock, Process, free_port, wait_for

CHROMA = "chromadb==1.5.9"
DATABASE = "/api/v2/tenants/default_tenant/databases/default_database"
# The wheel has the whole server in one module; its other dependencies are not needed.
SERVE = "import sys, chromadb_rust_bindings as chroma; chroma.cli(['chroma', *sys.argv[1:]])"


def graph(source: dict) -> dict:
    """A scripted model makes the calls of the configuration, then ends."""
    return {
        "name": "reader",
        "state": {"messages": {"reducer": "messages"}},
        "nodes": {
            "model": {
                "kind": "script",
                "replies": [
                    {"when": {"@eq": ["{{messages[-1].type}}", "tool"]}, "content": "read"},
                    {"content": "", "tool_calls": "{{config.calls}}"},
                ],
            },
            "tools": {"kind": "tools", "sources": [source]},
        },
        "edges": [
            ["__start__", "model"],
            {
                "from": "model",
                "fanout": {
                    "over": "{{messages[-1].tool_calls}}",
                    "as": "call",
                    "to": "tools",
                    "arg": {"call": "{{call}}"},
                },
            },
            ["tools", "model"],
        ],
    }


GRAPHS = {
    "collections": graph({"langconnect": "{{config.rag}}"}),
    "archives": graph({"chroma": "{{config.rag_config}}"}),
}


def started(thing):
    try:
        yield thing.start()
    finally:
        thing.stop()
        getattr(thing, "remove", thing.stop)()


@pytest.fixture(scope="module")
def server():
    yield from started(Heddle(graphs=GRAPHS))


@pytest.fixture
def server_with():
    """server_with(env): a server with that environment."""
    made = []

    def create(env: dict) -> Heddle:
        made.append(Heddle(graphs=GRAPHS, env=env))
        return made[-1].start()

    yield create
    try:
        for each in made:
            each.stop()
    finally:
        for each in made:
            each.remove()


@pytest.fixture(scope="session")
def embeddings():
    """A scripted model that makes vectors from the words of a text."""
    yield from started(Mock())


@pytest.fixture(scope="session")
def chroma_module() -> Path:
    """Installed once beside the virtual environment."""
    folder = Path(sys.prefix).parent / "agent-chroma"
    stamp = folder / "installed"
    if not stamp.exists() or stamp.read_text() != CHROMA:
        command = [
            sys.executable,
            "-m",
            "pip",
            "install",
            "--quiet",
            "--no-deps",
            "--upgrade",
            "--target",
            str(folder),
            CHROMA,
        ]
        subprocess.run(command, check=True, timeout=500)
        stamp.write_text(CHROMA)
    return folder


@pytest.fixture(scope="session")
def chroma(chroma_module, tmp_path_factory):
    """The address of a Chroma server."""
    port = free_port()
    folder = tmp_path_factory.mktemp("chroma")
    command = [sys.executable, "-c", SERVE, "run", "--path", str(folder), "--host", "127.0.0.1", "--port", str(port)]
    for process in started(
        Process(command, ready="Connect to Chroma", env={"PYTHONPATH": str(chroma_module)}, cwd=folder)
    ):
        url = f"http://127.0.0.1:{port}"
        wait_for(lambda: answers(url), 120, "Chroma's heartbeat")
        yield url
        del process


def answers(url: str) -> bool:
    try:
        return httpx.get(url + "/api/v2/heartbeat", timeout=60).status_code == 200
    except httpx.TransportError:
        return False


@pytest.fixture(scope="session")
def fill(chroma, embeddings):
    """fill(name, {text: metadata}): a collection with these documents."""

    def create(name: str, documents: dict) -> None:
        texts = list(documents)
        with httpx.Client(timeout=60) as http:
            vectors = (
                http.post(embeddings.base_url + "/embeddings", json={"model": "m", "input": texts})
                .raise_for_status()
                .json()
            )
            made = http.post(f"{chroma}{DATABASE}/collections", json={"name": name}).raise_for_status().json()
            body = {
                "ids": [f"{name}-{i}" for i in range(len(texts))],
                "embeddings": [each["embedding"] for each in vectors["data"]],
                "documents": texts,
                "metadatas": list(documents.values()),
            }
            http.post(f"{chroma}{DATABASE}/collections/{made['id']}/add", json=body).raise_for_status()

    return create


def calls(name: str, *arguments: dict) -> list[dict]:
    return [{"name": name, "args": args, "id": f"call_{i}"} for i, args in enumerate(arguments)]


@pytest.fixture
def search(server):
    """search(graph, tool, arguments, configurable): returns the tool messages and the reported
    problems."""

    def run(assistant: str, name: str, arguments, server=server, **configurable):
        arguments = arguments if isinstance(arguments, list) else [arguments]
        configurable |= {"calls": calls(name, *arguments)}
        events = server.stream(
            assistant,
            {"messages": "go"},
            thread=server.thread(),
            configurable=configurable,
            stream_mode=["custom", "values"],
        )
        values = [data for event, data, _ in events if event == "values"][-1]
        problems = [data["message"] for event, data, _ in events if event == "custom"]
        return [m for m in values["messages"] if m["type"] == "tool"], problems

    return run
