/**
 * A run: one call of the server that lasts as long as the graph works.
 */
import { inCall } from "./context.js";
import { failureOf } from "./failure.js";
import { member, type Fields } from "./frame.js";
import type { Graph } from "./graph.js";
import { isFromModel, messageNamespace, pieceText } from "./events.js";
import { RemoteStore } from "./items.js";
import type { IncomingCall } from "./link.js";
import type { Project } from "./project.js";
import { render } from "./render.js";
import { RemoteSaver } from "./saver.js";
import { hasTools, ToolWatch } from "./tools.js";

const INTERRUPT = "__interrupt__";

/** A chunk of LangGraph's stream: where, in which mode, what. */
type Chunk = readonly [ns: string, mode: string, payload: unknown];

export async function run(call: IncomingCall, project: Project): Promise<void> {
  const saver = new RemoteSaver(call.link, call.id);
  const outcome = new Outcome(call);
  try {
    await inCall(call, () => execute(call, project, saver, outcome));
  } catch (error) {
    outcome.fail(error);
  }
  // Cancelled tasks leave before what they stored has arrived.
  await saver.settled();
  outcome.answer();
}

async function execute(call: IncomingCall, project: Project, saver: RemoteSaver, outcome: Outcome): Promise<void> {
  const config = configOf(call, saver);
  const context = member(call, "context") ?? undefined;
  const { graph, dispose } = await project.make(String(call.head.graph), config, context, true);
  try {
    const modes = modesOf(call.head.modes);
    if (hasTools(graph)) config.callbacks = [(outcome.tools = new ToolWatch())];
    const options = optionsOf(call, config, context, modes);
    const input = await inputOf(call, project);
    const chunks = modes.includes("events")
      ? fromEvents(call, graph, input, options)
      : fromStream(graph, input, options);
    await send(call, chunks, new Set(modes), outcome);
  } finally {
    await dispose?.();
  }
}

/** Sends what clients want to see, and keeps the last values. */
async function send(
  call: IncomingCall,
  chunks: AsyncIterable<Chunk>,
  modes: ReadonlySet<string>,
  outcome: Outcome,
): Promise<void> {
  for await (const [ns, mode, payload] of chunks) {
    const text = modes.has(mode) ? pieceText(mode, payload) : undefined;
    if (mode === "values" && ns === "") outcome.values(payload, text);
    else if (mode === "messages" && isFromModel(payload)) outcome.tokens++;
    if (text === undefined) continue;
    const hindrance = call.hindrance();
    if (hindrance !== undefined) await hindrance;
    call.piece(headOf(mode, ns), [text]);
  }
}

const rootHeads = new Map<string, string>();

function headOf(mode: string, ns: string): string {
  if (ns !== "") return JSON.stringify({ mode, ns });
  let head = rootHeads.get(mode);
  if (head === undefined) rootHeads.set(mode, (head = JSON.stringify({ mode, ns })));
  return head;
}

async function* fromStream(graph: Graph, input: unknown, options: Fields): AsyncGenerator<Chunk> {
  for await (const chunk of await graph.stream(input, options)) yield chunkOf(chunk, options.subgraphs === true);
}

/** The same with LangChain's events between; those of the graph itself carry its stream. */
async function* fromEvents(call: IncomingCall, graph: Graph, input: unknown, options: Fields): AsyncGenerator<Chunk> {
  const isDeep = options.subgraphs === true;
  for await (const event of graph.streamEvents(input, { ...options, version: "v2" })) {
    if (event.tags?.includes("langsmith:hidden")) continue;
    if (event.event === "on_chain_stream" && event.run_id === call.head.run_id) yield chunkOf(event.data.chunk, isDeep);
    else yield ["", "events", event];
  }
}

function chunkOf(chunk: unknown, isDeep: boolean): Chunk {
  const [mode, payload] = (isDeep ? (chunk as unknown[]).slice(1) : chunk) as [string, unknown];
  if (mode === "messages") return [messageNamespace(payload), mode, payload];
  return [isDeep ? (chunk as [string[]])[0].join("|") : "", mode, payload];
}

/** How the run ended. */
class Outcome {
  readonly #call: IncomingCall;
  #last: { values: unknown; text: string | undefined } | undefined;
  #isInterrupted = false;
  #error: unknown;
  #hasFailed = false;
  tokens = 0;
  tools: ToolWatch | undefined;

  constructor(call: IncomingCall) {
    this.#call = call;
  }

  values(values: unknown, text: string | undefined): void {
    const isInterrupt = typeof values === "object" && values !== null && INTERRUPT in values;
    if (isInterrupt) this.#isInterrupted = true;
    if (!isInterrupt || Object.keys(values).length > 1) this.#last = { values, text };
  }

  fail(error: unknown): void {
    this.#hasFailed = true;
    this.#error = error;
  }

  answer(): void {
    const head: Fields = { status: this.#status() };
    if (head.status === "failed") head.error = failureOf(this.#error);
    if (this.tokens > 0) head.tokens = this.tokens;
    if (head.status === "cancelled" && this.tools !== undefined) head.tools = this.tools.names();
    const blobs = this.#last === undefined ? [] : [this.#last.text ?? render(this.#last.values)];
    this.#call.answer(head, blobs);
  }

  #status(): string {
    if (this.#hasFailed) return this.#call.isCancelled ? "cancelled" : "failed";
    return this.#isInterrupted ? "interrupted" : "done";
  }
}

const KNOWN_MODES = new Set(["values", "updates", "messages", "custom", "debug", "tasks", "checkpoints", "tools", "events"]);

function modesOf(modes: unknown): string[] {
  const wanted = Array.isArray(modes) ? (modes as string[]) : [];
  return wanted.map((mode) => (mode === "messages-tuple" ? "messages" : mode)).filter((mode) => KNOWN_MODES.has(mode));
}

function configOf(call: IncomingCall, saver: RemoteSaver): Fields {
  const { configurable, metadata, tags, recursion_limit, max_concurrency, run_name } = (member(call, "config") ?? {}) as Fields;
  const keys: Fields = { ...(configurable as Fields | undefined), __pregel_checkpointer: saver };
  // LangGraph looks at which keys are there.
  for (const name of ["checkpoint_id", "checkpoint_ns", "checkpoint_map"]) {
    const value = call.head[name];
    if (value === null || value === undefined || value === "") delete keys[name];
    else keys[name] = value;
  }
  const config: Fields = { configurable: keys, metadata: metadata ?? {}, tags: tags ?? [] };
  if (typeof recursion_limit === "number") config.recursionLimit = recursion_limit;
  if (typeof max_concurrency === "number") config.maxConcurrency = max_concurrency;
  if (typeof run_name === "string") config.runName = run_name;
  return config;
}

function optionsOf(call: IncomingCall, config: Fields, context: unknown, modes: readonly string[]): Fields {
  const { head } = call;
  const options: Fields = {
    ...config,
    runId: head.run_id,
    streamMode: [...new Set([...modes.filter((mode) => mode !== "events"), "values"])],
    subgraphs: head.subgraphs === true,
    signal: call.signal,
    store: new RemoteStore(call.link, call.id),
  };
  if (context !== undefined) options.context = context;
  if (head.interrupt_before) options.interruptBefore = head.interrupt_before;
  if (head.interrupt_after) options.interruptAfter = head.interrupt_after;
  if (head.durability) options.durability = head.durability;
  return options;
}

async function inputOf(call: IncomingCall, project: Project): Promise<unknown> {
  const command = member(call, "command");
  if (command === undefined || command === null) return member(call, "input") ?? null;
  return commandOf(command as Fields, project);
}

/** A Command as clients write it. */
export async function commandOf({ resume, update, goto }: Fields, project: Project): Promise<object> {
  const { Command, Send } = await project.langgraph();
  const fields: Fields = {};
  if (resume !== undefined && resume !== null) fields.resume = resume;
  if (update !== undefined && update !== null) fields.update = update;
  if (goto !== undefined && goto !== null) {
    fields.goto = [goto].flat().map((target) => {
      if (typeof target === "string") return target;
      const { node, input, arg, args } = target as Fields;
      return new Send(String(node), input ?? arg ?? args);
    });
  }
  return new Command(fields);
}
