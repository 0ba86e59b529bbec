"""Schemas of TypeScript graphs come from their types where nothing else describes them."""

from __future__ import annotations

import pytest

TYPES = """
import { Annotation, MessagesAnnotation, START, StateGraph, entrypoint } from "@langchain/langgraph";
import type { LangGraphRunnableConfig, Runtime } from "@langchain/langgraph";
import { z } from "zod";
import type { Context, Target } from "./context.js";

const State = Annotation.Root({
  ...MessagesAnnotation.spec,
  n: Annotation<number>,
  notes: Annotation<string[]>({ reducer: (left, right) => left.concat(right), default: () => [] }),
});
const Annotated = Annotation.Root({ model: Annotation<Context["model"]>, target: Annotation<Target> });
type Alias = Pick<Context, "model" | "limit">;

export const annotated = new StateGraph(State, Annotated).addNode("same", () => ({})).addEdge(START, "same").compile();

const builder = new StateGraph(State);
builder.addNode("same", (_state: typeof State.State, _runtime: Runtime<Context>) => ({})).addEdge(START, "same");
export const declared = builder.compile();

export async function made() {
  return new StateGraph(State)
    .addNode("same", (_state: typeof State.State, _config: LangGraphRunnableConfig<Alias>) => ({}))
    .addEdge(START, "same")
    .compile();
}

export const entry = entrypoint("entry", async (input: { n: number }, _config: LangGraphRunnableConfig<Alias>) => input.n);

export const zod = new StateGraph(State, z.object({ tone: z.string() }))
  .addNode("same", () => ({}))
  .addEdge(START, "same")
  .compile();

export const plain = new StateGraph(State).addNode("same", () => ({})).addEdge(START, "same").compile();
"""

CONTEXT = """
export interface Target {
  /** Where it writes. */
  folder: string;
  tags?: string[];
  parent?: Target;
}

export interface Context {
  /** The model's name. */
  model: "small" | "large";
  limit?: number;
  dry: boolean | null;
  target: Target;
  pair: [string, number];
  counts: Record<string, number>;
  since: Date;
  notify(text: string): void;
}
"""

NAMES = ("annotated", "declared", "made", "entry", "zod", "plain")
GRAPHS = {name: f"./types.ts:{name}" for name in NAMES}
FILES = {"types.ts": TYPES, "context.ts": CONTEXT, "package.json": '{"type": "module"}'}

TARGET = {
    "type": "object",
    "properties": {
        "folder": {"type": "string", "description": "Where it writes."},
        "tags": {"type": "array", "items": {"type": "string"}},
        "parent": {"type": "object"},
    },
    "required": ["folder"],
}
MODEL = {"type": "string", "enum": ["small", "large"]}


@pytest.fixture(scope="module")
def server(project_module):
    return project_module(config={"graphs": GRAPHS}, files=FILES)


def schemas(server, name: str) -> dict:
    found = server.ask("GET", f"/assistants/{name}/schemas")
    assert found["graph_id"] == name and found["config_schema"] == found["context_schema"]
    return found


def test_a_context_that_is_an_interface_has_its_members(server):
    schema = schemas(server, "declared")["context_schema"]
    assert schema["type"] == "object"
    assert schema["properties"] == {
        "model": MODEL | {"description": "The model's name."},
        "limit": {"type": "number"},
        "dry": {"type": ["boolean", "null"]},
        "target": TARGET,
        "pair": {"type": "array", "items": [{"type": "string"}, {"type": "number"}], "minItems": 2, "maxItems": 2},
        "counts": {"type": "object", "additionalProperties": {"type": "number"}},
        "since": {"type": "string", "format": "date-time"},
    }
    assert set(schema["required"]) == {"model", "dry", "target", "pair", "counts", "since"}


def test_a_context_of_annotations_has_their_types(server):
    schema = schemas(server, "annotated")["context_schema"]
    assert schema["properties"] == {"model": MODEL, "target": TARGET}
    assert "required" not in schema


@pytest.mark.parametrize("name", ["made", "entry"])
def test_functions_and_entrypoints_have_the_context_of_their_type_alias(server, name):
    schema = schemas(server, name)["context_schema"]
    assert set(schema["properties"]) == {"model", "limit"} and schema["required"] == ["model"]


def test_input_output_and_state_have_the_types_of_annotations(server):
    found = schemas(server, "plain")
    for key in ("input_schema", "output_schema", "state_schema"):
        properties = found[key]["properties"]
        assert properties["n"]["type"] == "number", key
        assert properties["notes"] == {"type": "array", "items": {"type": "string"}}, key
        assert properties["messages"] == {"type": "array", "items": {"type": "object"}}, key
    assert found["context_schema"] is None
    assert schemas(server, "entry")["input_schema"]["properties"] == {"n": {"type": "number"}}


def test_zod_is_more_exact_than_types(server):
    schema = schemas(server, "zod")["context_schema"]
    assert set(schema["properties"]) == {"tone"} and schema["required"] == ["tone"]


def test_without_time_for_the_compiler_the_names_remain(project):
    """A compiler that does not finish is reported in the log; the worker continues."""
    config = {"graphs": {"annotated": "./types.ts:annotated"}}
    server = project(config=config, files=FILES, env={"LANGGRAPH_SCHEMA_RESOLVE_TIMEOUT_MS": "1"})
    schema = schemas(server, "annotated")["context_schema"]
    assert schema["properties"] == {"model": {}, "target": {}}
    assert "schemas from types are incomplete" in server.log.read_text()
    assert server.wait("annotated", {"n": 1})["n"] == 1
