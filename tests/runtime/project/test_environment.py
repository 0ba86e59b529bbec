"""Features of projects for LangGraph's own servers: variables, ids with spaces, schemas of
contexts."""

from __future__ import annotations

import json

import httpx
import pytest
from langgraph_sdk import get_sync_client

PYTHON = """
from typing import TypedDict
from langgraph.graph import START, StateGraph

class State(TypedDict, total=False):
    seen: dict

class Context(TypedDict, total=False):
    tone: str

def look_at(state: State, config):
    from langgraph.runtime import get_runtime
    context = get_runtime().context or {}
    return {"seen": {"model": config["configurable"].get("model"), "tone": context.get("tone")}}

graph = StateGraph(State, context_schema=Context).add_node("look", look_at).add_edge(START, "look").compile()
"""

NAME = "Deep Researcher"


def test_langgraph_config_is_that_of_the_first_assistants(project):
    config = {NAME: {"configurable": {"model": "small"}, "context": {"tone": "dry"}}, "gone": {}}
    files = {"look.py": PYTHON, ".env": f"LANGGRAPH_CONFIG='{json.dumps(config)}'\n"}
    server = project(
        config={"graphs": {NAME: "./look.py:graph", "other": "./look.py:graph"}, "env": ".env"}, files=files
    )
    assert server.wait(NAME, {})["seen"] == {"model": "small", "tone": "dry"}
    assert server.wait(NAME, {}, configurable={"model": "large"})["seen"]["model"] == "large"
    assert server.wait("other", {})["seen"] == {"model": None, "tone": None}
    assert 'LANGGRAPH_CONFIG: unknown graph "gone"' in server.log.read_text()


def test_a_graph_id_with_spaces_is_accepted_in_every_place(project):
    server = project(config={"graphs": {NAME: "./look.py:graph"}}, files={"look.py": PYTHON})
    client = get_sync_client(url=server.url)
    assistant = client.assistants.get(NAME)
    assert (assistant["graph_id"], assistant["name"]) == (NAME, NAME)
    assert client.assistants.get_graph(NAME)["nodes"]
    assert client.assistants.get_schemas(NAME)["graph_id"] == NAME
    assert client.assistants.search(graph_id=NAME)[0]["assistant_id"] == assistant["assistant_id"]
    own = client.assistants.create(NAME, config={"configurable": {"model": "mine"}})
    thread = client.threads.create(graph_id=NAME)["thread_id"]
    assert client.runs.wait(thread, own["assistant_id"], input={})["seen"]["model"] == "mine"
    assert client.runs.wait(thread, NAME, input={})["seen"]["model"] is None
    client.threads.update_state(thread, {"seen": {"by": "hand"}})
    assert client.threads.get_state(thread)["values"] == {"seen": {"by": "hand"}}
    assert client.threads.search(metadata={"graph_id": NAME})[0]["thread_id"] == thread
    assert any(part.event == "values" for part in client.runs.stream(None, NAME, input={}))
    with httpx.Client(base_url=server.url) as plain:
        assert plain.get(f"/assistants/{NAME.replace(' ', '%20')}").json()["graph_id"] == NAME


CONTEXTS = """
import { Annotation, START, StateGraph } from "@langchain/langgraph";
import { z } from "zod";
import { z as z3 } from "zod/v3";
const State = Annotation.Root({ n: Annotation<number> });
const make = (context?: never) => new StateGraph(State, context).addNode("same", () => ({})).addEdge(START, "same").compile();
export const plain = make();
export const annotated = make(Annotation.Root({ model: Annotation<string>, tone: Annotation<string> }) as never);
export const zod = make(z.object({ model: z.string(), limit: z.number().optional() }) as never);
export const old = make(z3.object({ model: z3.string() }) as never);
"""


@pytest.fixture(scope="module")
def contexts(project_module):
    graphs = {name: f"./contexts.ts:{name}" for name in ("plain", "annotated", "zod", "old")}
    return project_module(config={"graphs": graphs}, files={"contexts.ts": CONTEXTS})


def schemas(server, name: str) -> tuple[dict, dict]:
    found = server.ask("GET", f"/assistants/{name}/schemas")
    return found["config_schema"], found["context_schema"]


def test_a_context_of_annotations_has_its_names(contexts):
    for schema in schemas(contexts, "annotated"):
        assert schema["type"] == "object" and set(schema["properties"]) == {"model", "tone"}


@pytest.mark.parametrize(("name", "names"), [("zod", {"model", "limit"}), ("old", {"model"})])
def test_a_context_of_zod_has_its_types(contexts, name, names):
    for schema in schemas(contexts, name):
        assert set(schema["properties"]) == names and schema["properties"]["model"]["type"] == "string"
        assert schema["required"] == ["model"]


def test_a_graph_without_a_context_has_no_schema_of_it(contexts):
    assert schemas(contexts, "plain") == (None, None)
