/** Graphs in a worker do what they do in process, with LangGraph's own saver. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { Command, MemorySaver } from "@langchain/langgraph";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { Fields } from "../src/runtime/frame.js";
import { asGraph, type Graph } from "../src/runtime/graph.js";
import { render } from "../src/runtime/render.js";
import { StubServer, type Piece } from "./lib/stub-server.js";

const folder = fileURLToPath(new URL("./project", import.meta.url));
const config = JSON.parse(readFileSync(join(folder, "langgraph.json"), "utf8")) as { graphs: Fields };
const graphs = Object.fromEntries(
  Object.entries(config.graphs).map(([id, spec]) => [id, typeof spec === "string" ? { path: spec } : spec]),
);

let server: StubServer;
beforeAll(async () => {
  server = await StubServer.start({ folder, graphs });
});
afterAll(() => server.close());

/** Names that differ from run to run, by the order in which they are first seen. */
function normalized(value: unknown): unknown {
  const names = new Map<string, string>();
  const text = JSON.stringify(value).replace(
    /(?:run-)?[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}|\b[0-9a-f]{32}\b/g,
    (name) => names.get(name) ?? (names.set(name, `id-${names.size}`), `id-${names.size - 1}`),
  );
  return JSON.parse(text);
}

let threads = 0;
const freshThread = () => `thread-${++threads}`;

async function inProcess(id: string): Promise<Graph> {
  const [file, name] = (graphs[id] as { path: string }).path.split(":") as [string, string];
  const module = (await import(join(folder, file))) as Fields;
  const graph = asGraph(module[name])!;
  (graph as { checkpointer: unknown }).checkpointer = new MemorySaver();
  return graph;
}

/** What a graph streams in process. */
async function streamed(graph: Graph, input: unknown, modes: string[], thread: string): Promise<Piece[]> {
  const options = { streamMode: modes, configurable: { thread_id: thread } };
  const pieces: Piece[] = [];
  for await (const chunk of await graph.stream(input, options)) {
    const [mode, data] = chunk as [string, unknown];
    pieces.push({ mode, ns: "", data: JSON.parse(render(data)) });
  }
  return pieces;
}

describe("a graph in a worker", () => {
  it("says hello and tells what there is", () => {
    expect(server.hello).toMatchObject({ protocol: 1, runtime: "js", key: "k", pid: server.pid, langgraph: "1.4.18" });
    const told = server.ready!.graphs as Record<string, Fields>;
    expect(Object.entries(told).filter(([, graph]) => graph.error)).toEqual([]);
    expect(Object.keys(told)).toEqual(Object.keys(graphs));
    expect(told.chat!.structure).toMatchObject({
      kind: "graph",
      channels: { messages: "BinaryOperatorAggregate", __start__: "EphemeralValue", "branch:to:chat": "EphemeralValue" },
      stream_channels: ["messages"],
      output_channels: ["messages"],
      input_channels: "__start__",
      nodes: { chat: { triggers: ["branch:to:chat"], subgraph: null, deferred: false, checkpointer: null } },
    });
    expect(told.nested!.structure).toMatchObject({ nodes: { middle: { subgraph: { nodes: { leaf: {} } } } } });
    expect(told.entry!.structure).toMatchObject({ kind: "functional", output_channels: "__end__" });
  });

  it("remembers", async () => {
    const graph = await inProcess("chat");
    const thread = freshThread();
    for (const content of ["one", "two", "three"]) {
      const input = { messages: [{ role: "user", content, id: content }] };
      const { status, output, pieces } = await server.run("chat", { input }, { thread });
      const expected = await streamed(graph, input, ["values"], thread);
      expect(status).toBe("done");
      expect(normalized(pieces)).toEqual(normalized(expected));
      expect(output).toEqual(pieces.at(-1)!.data);
    }
    const steps = server.store.checkpoints(thread).map(({ metadata }) => metadata.step);
    expect(steps).toEqual([7, 6, 5, 4, 3, 2, 1, 0, -1]);
  });

  it("asks twice in one node", async () => {
    const graph = await inProcess("questions");
    const thread = freshThread();
    const inputs = [{ input: {} }, { command: { resume: "Ann" } }, { command: { resume: "Oslo" } }];
    const statuses = [];
    for (const head of inputs) {
      const { status, pieces } = await server.run("questions", { ...head, modes: ["values", "updates"] }, { thread });
      const input = "command" in head ? new Command(head.command as never) : head.input;
      expect(normalized(pieces)).toEqual(normalized(await streamed(graph, input, ["values", "updates"], thread)));
      statuses.push(status);
    }
    expect(statuses).toEqual(["interrupted", "interrupted", "done"]);
  });
});
