/** A run: one call of the server that lasts as long as the graph runs. */
import { commandOf } from "./command.js";
import { configOf } from "./config.js";
import { isFromModel, messageNamespace, pieceText } from "./events.js";
import { describe, failureOf } from "./failure.js";
import { member, type Fields } from "./frame.js";
import type { Graph } from "./graph.js";
import { RemoteStore } from "./items.js";
import type { IncomingCall } from "./link.js";
import { forCaller } from "./loopback.js";
import type { Project } from "./project.js";
import { render } from "./render.js";
import { RemoteSaver } from "./saver.js";
import { hasTools, ToolWatch } from "./tools.js";

const INTERRUPT = "__interrupt__";

/** A chunk of LangGraph's stream: namespace, mode, value. */
type Chunk = readonly [ns: string, mode: string, payload: unknown];

export async function run(call: IncomingCall, project: Project): Promise<void> {
    const saver = new RemoteSaver(call);
    const outcome = new Outcome(call);
    try {
        await forCaller(call, () => execute(call, project, saver, outcome));
    } catch (error) {
        outcome.fail(error);
    }
    // Cancelled tasks end before their writes have arrived.
    await saver.settled();
    outcome.answer();
}

async function execute(
    call: IncomingCall,
    project: Project,
    saver: RemoteSaver,
    outcome: Outcome,
): Promise<void> {
    const config = configOf(call, saver);
    const context = member(call, "context") ?? undefined;
    const { graph, dispose } = await project.make(String(call.head.graph), config, context, true);
    try {
        const modes = modesOf(call.head.modes);
        if (hasTools(graph)) config.callbacks = [(outcome.tools = new ToolWatch())];
        const options = optionsOf(call, config, context, modes);
        const input = await inputOf(call, project);
        const chunks = modes.includes("events")
            ? fromEvents(graph, input, options)
            : fromStream(graph, input, options);
        await send(call, chunks, new Set(modes), outcome);
    } finally {
        await dispose?.();
    }
}

/** Sends the requested stream modes and keeps the last values. */
async function send(
    call: IncomingCall,
    chunks: AsyncIterable<Chunk>,
    modes: ReadonlySet<string>,
    outcome: Outcome,
): Promise<void> {
    for await (const [ns, mode, payload] of chunks) {
        const text = modes.has(mode) && call.isHeard ? pieceText(mode, payload) : undefined;
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
    for await (const chunk of await graph.stream(input, options))
        yield chunkOf(chunk, options.subgraphs === true);
}

/** The same with LangChain's events in between; those of the graph itself carry its stream. */
async function* fromEvents(graph: Graph, input: unknown, options: Fields): AsyncGenerator<Chunk> {
    const isDeep = options.subgraphs === true;
    let root = options.runId;
    for await (const event of graph.streamEvents(input, { ...options, version: "v2" })) {
        if (event.tags?.includes("langsmith:hidden")) continue;
        root ??= event.run_id;
        if (event.event === "on_chain_stream" && event.run_id === root)
            yield chunkOf(event.data.chunk, isDeep);
        else yield ["", "events", event];
    }
}

function chunkOf(chunk: unknown, isDeep: boolean): Chunk {
    const [mode, payload] = (isDeep ? (chunk as unknown[]).slice(1) : chunk) as [string, unknown];
    if (mode === "messages") return [messageNamespace(payload), mode, payload];
    return [isDeep ? (chunk as [string[]])[0].join("|") : "", mode, payload];
}

/** The result of the run. */
class Outcome {
    readonly #call: IncomingCall;
    #last: { values: unknown; text: string | undefined } | undefined;
    #isInterrupted = false;
    readonly #interrupts: unknown[] = [];
    #error: unknown;
    #hasFailed = false;
    tokens = 0;
    tools: ToolWatch | undefined;

    constructor(call: IncomingCall) {
        this.#call = call;
    }

    values(values: unknown, text: string | undefined): void {
        const isInterrupt = typeof values === "object" && values !== null && INTERRUPT in values;
        if (isInterrupt) {
            this.#isInterrupted = true;
            this.#interrupts.push(...(values[INTERRUPT] as unknown[]));
        }
        if (!isInterrupt || Object.keys(values).length > 1) this.#last = { values, text };
    }

    fail(error: unknown): void {
        this.#hasFailed = true;
        this.#error = error;
    }

    answer(): void {
        const head: Fields = { status: this.#status() };
        if (head.status === "failed") head.error = this.#failure();
        if (this.tokens > 0) head.tokens = this.tokens;
        if (head.status === "cancelled" && this.tools !== undefined)
            head.tools = this.tools.names();
        this.#call.answer(head, this.#output());
    }

    /** The last values; with the interrupts if any, as an interrupted invoke() returns them. */
    #output(): string[] {
        const { values, text } = this.#last ?? {};
        if (this.#interrupts.length > 0 && (typeof values === "object" || values === undefined)) {
            return [render({ ...values, [INTERRUPT]: this.#interrupts })];
        }
        return this.#last === undefined ? [] : [text ?? render(values)];
    }

    #failure(): Fields {
        const failure = failureOf(this.#error);
        const { run_id, graph } = this.#call.head;
        console.error(`run ${String(run_id)} of graph ${String(graph)} failed${describe(failure)}`);
        return failure;
    }

    #status(): string {
        if (this.#hasFailed) return this.#call.isCancelled ? "cancelled" : "failed";
        return this.#isInterrupted ? "interrupted" : "done";
    }
}

const KNOWN_MODES = new Set([
    "values",
    "updates",
    "messages",
    "custom",
    "debug",
    "tasks",
    "checkpoints",
    "tools",
    "events",
]);

function modesOf(modes: unknown): string[] {
    const wanted = Array.isArray(modes) ? (modes as string[]) : [];
    return wanted
        .map((mode) => (mode === "messages-tuple" ? "messages" : mode))
        .filter((mode) => KNOWN_MODES.has(mode));
}

function optionsOf(
    call: IncomingCall,
    config: Fields,
    context: unknown,
    modes: readonly string[],
): Fields {
    const { head } = call;
    const options: Fields = {
        ...config,
        // A trace contains each id once.
        ...(head.attempt === 1 ? { runId: head.run_id } : {}),
        streamMode: [...new Set([...modes.filter((mode) => mode !== "events"), "values"])],
        subgraphs: head.subgraphs === true,
        signal: call.signal,
        store: new RemoteStore(call),
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
    return commandOf(command as Fields, await project.langgraph());
}
