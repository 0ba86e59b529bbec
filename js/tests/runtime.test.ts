/** Graphs in a worker behave as they do in process, with LangGraph's own saver. */
import { join } from "node:path";
import { Command, MemorySaver } from "@langchain/langgraph";
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import type { Fields } from "../src/runtime/frame.js";
import { asGraph, type Graph } from "../src/runtime/graph.js";
import { render } from "../src/runtime/render.js";
import { folder, graphs, normalized } from "./lib/project.js";
import { FrameType, outcomeOf, StubServer, type Piece } from "./lib/stub-server.js";

let server: StubServer;
beforeAll(async () => {
    server = await StubServer.start({ folder, graphs });
});
afterAll(() => server.close());

let threads = 0;
const freshThread = () => `thread-${++threads}`;

async function inProcess(id: string): Promise<Graph> {
    const [file, name] = graphs[id]!.path.split(":") as [string, string];
    const module = (await import(join(folder, file))) as Fields;
    const graph = asGraph(module[name])!;
    (graph as { checkpointer: unknown }).checkpointer = new MemorySaver();
    return graph;
}

/** The stream of a graph in process. */
async function streamed(
    graph: Graph,
    input: unknown,
    modes: string[],
    thread: string,
    subgraphs = false,
): Promise<Piece[]> {
    const pieces: Piece[] = [];
    for await (const chunk of await graph.stream(input, {
        streamMode: modes,
        subgraphs,
        configurable: { thread_id: thread },
    })) {
        const [mode, data] = (subgraphs ? (chunk as unknown[]).slice(1) : chunk) as [
            string,
            unknown,
        ];
        const ns = subgraphs ? (chunk as [string[]])[0].join("|") : "";
        pieces.push({ mode, ns, data: JSON.parse(render(data)) });
    }
    return pieces;
}

const say = (content: string) => ({ messages: [{ role: "user", content, id: content }] });

/** The same inputs to both; the streams must be equal except for generated names. */
async function compare(
    id: string,
    heads: readonly Fields[],
    modes: string[],
    subgraphs = false,
): Promise<string[]> {
    const graph = await inProcess(id);
    const thread = freshThread();
    const statuses: string[] = [];
    for (const head of heads) {
        const { status, pieces, output } = await server.run(
            id,
            { ...head, modes, subgraphs },
            { thread },
        );
        const input = head.command ? new Command(head.command as never) : head.input;
        const expected = await streamed(graph, input, modes, thread, subgraphs);
        expect(normalized(pieces)).toEqual(normalized(expected));
        expect(pieces.length).toBeGreaterThan(0);
        if (status === "done")
            expect(output).toEqual(
                pieces.findLast(({ mode, ns }) => mode === "values" && ns === "")!.data,
            );
        statuses.push(String(status));
    }
    return statuses;
}

describe("the same as in process:", () => {
    it("a chat with memory", async () => {
        const heads = ["one", "two", "three"].map((text) => ({ input: say(text) }));
        expect(await compare("chat", heads, ["values", "updates"])).toEqual([
            "done",
            "done",
            "done",
        ]);
    });

    it("an agent with a tool", async () => {
        const heads = [
            { input: say("add 1 2") },
            { input: say("add 30 40") },
            { input: say("thanks") },
        ];
        expect(await compare("react", heads, ["values", "updates"])).toEqual([
            "done",
            "done",
            "done",
        ]);
    });

    it("parallel sends", async () => {
        const heads = [{ input: { items: ["a", "b", "c", "d"] } }, { input: { items: ["e"] } }];
        expect(await compare("fanout", heads, ["values", "updates"])).toEqual(["done", "done"]);
    });

    it("nested graphs", async () => {
        const heads = [
            { input: { ask: false } },
            { input: { ask: true } },
            { command: { resume: "yes" } },
        ];
        expect(await compare("nested", heads, ["values", "updates"])).toEqual([
            "done",
            "interrupted",
            "done",
        ]);
        expect(await compare("nested", heads, ["values", "updates"], true)).toEqual([
            "done",
            "interrupted",
            "done",
        ]);
    });

    it("two interrupts in one node", async () => {
        const heads = [
            { input: {} },
            { command: { resume: "Ann" } },
            { command: { resume: "Oslo" } },
        ];
        expect(await compare("questions", heads, ["values", "updates"])).toEqual([
            "interrupted",
            "interrupted",
            "done",
        ]);
    });

    it("many steps", async () => {
        expect(
            await compare("slow", [{ input: { until: 5 } }], ["values", "updates", "custom"]),
        ).toEqual(["done"]);
    });

    it("an entrypoint", async () => {
        const heads = [
            { input: { n: 1 } },
            { input: { n: 2, ask: true } },
            { command: { resume: 10 } },
            { input: { n: 3 } },
        ];
        expect(await compare("entry", heads, ["values", "updates"])).toEqual([
            "done",
            "interrupted",
            "done",
            "done",
        ]);
    });
});

describe("a run", () => {
    it("stores the checkpoints that LangGraph creates", async () => {
        const thread = freshThread();
        await server.run("chat", { input: say("one") }, { thread });
        const checkpoints = server.store.checkpoints(thread);
        expect(checkpoints.map(({ metadata }) => [metadata.source, metadata.step])).toEqual([
            ["loop", 1],
            ["loop", 0],
            ["input", -1],
        ]);
        const { checkpoint, values, id } = checkpoints[0]!;
        expect(checkpoint).toMatchObject({ v: 4, id });
        expect(checkpoint).not.toHaveProperty("channel_values");
        const versions = Object.values(
            (checkpoint as { channel_versions: Fields }).channel_versions,
        );
        expect(versions.every((version) => /^\d{32}\./.test(String(version)))).toBe(true);
        // Streaming produces message chunks; complete messages are stored.
        expect(JSON.parse(String(values.messages))).toMatchObject([
            { type: "human" },
            { $: "message", type: "ai" },
        ]);
    });

    it("streams messages in chunks", async () => {
        const { pieces, head } = await server.run(
            "chat",
            { input: say("a b c"), modes: ["messages"] },
            { thread: freshThread() },
        );
        const parts = pieces.map(({ data }) => data as [Fields, Fields]);
        expect(parts.map(([message]) => message.content).join("")).toBe("you said: a b c");
        expect(parts.length).toBeGreaterThan(3);
        expect(new Set(parts.map(([message]) => message.type))).toEqual(
            new Set(["AIMessageChunk"]),
        );
        expect(new Set(parts.map(([message]) => message.id)).size).toBe(1);
        expect(parts[0]![1]).toMatchObject({ langgraph_node: "chat", graph_id: "chat" });
        expect(pieces.every(({ mode, ns }) => mode === "messages" && ns === "")).toBe(true);
        expect(head.tokens).toBe(parts.length);
    });

    it("shows no secrets in debug events", async () => {
        const config = { configurable: { thread_id: "t", api_key: "sk-secret" }, metadata: {} };
        const modes = ["debug", "checkpoints", "tasks", "messages", "events"];
        const { pieces, status } = await server.run(
            "react",
            { input: say("add 1 2"), config, modes },
            { thread: freshThread() },
        );
        expect(status).toBe("done");
        expect(new Set(pieces.map(({ mode }) => mode))).toEqual(new Set(modes));
        expect(JSON.stringify(pieces)).not.toContain("sk-secret");
        expect(JSON.stringify(pieces)).not.toContain("__pregel_checkpointer");
        const debug = pieces
            .filter(({ mode }) => mode === "debug")
            .map(({ data }) => data as Fields);
        expect(new Set(debug.map(({ type }) => type))).toEqual(
            new Set(["checkpoint", "task", "task_result"]),
        );
        const { payload } = debug.find(({ type }) => type === "checkpoint")! as { payload: Fields };
        expect(payload).toMatchObject({
            checkpoint: { checkpoint_ns: "" },
            parent_checkpoint: null,
            next: ["__start__"],
        });
    });

    it("streams LangChain events", async () => {
        const { pieces } = await server.run(
            "chat",
            { input: say("a"), modes: ["events", "values"] },
            { thread: freshThread() },
        );
        const events = pieces
            .filter(({ mode }) => mode === "events")
            .map(({ data }) => (data as Fields).event);
        expect(events).toContain("on_chat_model_stream");
        expect(events).toContain("on_chain_end");
        expect(pieces.filter(({ mode }) => mode === "values").length).toBe(2);
    });

    it("has its output without a subscriber", async () => {
        const { pieces, output } = await server.run(
            "chat",
            { input: say("a"), modes: [] },
            { thread: freshThread() },
        );
        expect(pieces).toEqual([]);
        expect(output).toMatchObject({
            messages: [{ type: "human" }, { type: "ai", content: "you said: a" }],
        });
    });

    it("is quiet until a client subscribes", async () => {
        const thread = freshThread();
        const quiet = await server.run("chat", { input: say("a"), quiet: true }, { thread });
        expect(quiet.pieces).toEqual([]);
        expect(quiet.output).toMatchObject({ messages: [{}, { content: "you said: a" }] });
        const { id, ended } = server.begin(
            "slow",
            { input: { until: 200 }, config: withLimit(1000), modes: ["custom"], quiet: true },
            { thread: freshThread() },
        );
        server.send(FrameType.Go, id, {});
        const heard = outcomeOf(await ended);
        expect(heard.status).toBe("done");
        expect(heard.pieces.length).toBeGreaterThan(0);
    });

    const withLimit = (recursion_limit: number) => ({ configurable: {}, recursion_limit });

    it("sends nothing while it is held", async () => {
        let held = false;
        let late = 0;
        const onPiece = () => {
            if (held) late++;
            if (held || late > 0) return;
            held = true;
            server.send(FrameType.Hold, id, {});
            // Chunks may still be in flight: the response to a later call proves that they have
            // arrived.
            void server.call({ op: "ping" }).ended.then(() => {
                late = 0;
                void server.call({ op: "ping" }).ended.then(() => {
                    whileHeld = late;
                    held = false;
                    late = 1;
                    server.send(FrameType.Go, id, {});
                });
            });
        };
        let whileHeld = -1;
        const { id, ended } = server.begin(
            "slow",
            { input: { until: 50 }, config: withLimit(1000), modes: ["custom"] },
            { thread: freshThread(), onPiece },
        );
        const { status, pieces } = outcomeOf(await ended);
        expect(status).toBe("done");
        expect(whileHeld).toBe(0);
        expect(pieces.length).toBe(50);
    });

    it("is cancelled", async () => {
        const thread = freshThread();
        const onPiece = () => server.send(FrameType.Cancel, id, {});
        const { id, ended } = server.begin(
            "slow",
            { input: {}, modes: ["custom"] },
            { thread, onPiece },
        );
        const { status, pieces, head } = outcomeOf(await ended);
        expect(status).toBe("cancelled");
        expect(head).not.toHaveProperty("error");
        expect(pieces.map(({ data }) => data)).toEqual([{ tick: 0 }]);
        // Stored data stays, and the thread can continue.
        expect(server.store.checkpoints(thread)[0]!.metadata.step).toBe(1);
        const again = await server.run("slow", { input: { until: 2 } }, { thread });
        expect(again).toMatchObject({ status: "done", output: { ticks: 2 } });
    });

    it("names the running tools when it is cancelled", async () => {
        const onPiece = () => server.send(FrameType.Cancel, id, {});
        const { id, ended } = server.begin(
            "react",
            { input: say("wait"), modes: ["custom"] },
            { thread: freshThread(), onPiece },
        );
        expect(outcomeOf(await ended).head).toMatchObject({ status: "cancelled", tools: ["wait"] });
    });

    it("fails with the location in the user's file", async () => {
        const { status, head } = await server.run(
            "chat",
            { input: say("fail") },
            { thread: freshThread() },
        );
        expect(status).toBe("failed");
        const error = head.error as Fields;
        expect(error).toMatchObject({
            type: "RangeError",
            message: "the graph was told to fail",
            file: join(folder, "chat.ts"),
            line: 8,
        });
        expect(error.traceback).toContain("chat.ts:8");
        expect(error.traceback).not.toContain("node_modules");
        // Its output arrives separately from its responses.
        await vi.waitFor(
            () => expect(server.log.join("")).toContain("the graph was told to fail"),
            { timeout: 60_000 },
        );
    });

    it("fails at the recursion limit", async () => {
        const head = { input: { until: 100 }, config: withLimit(5) };
        const { status, head: ended } = await server.run("slow", head, { thread: freshThread() });
        expect(status).toBe("failed");
        expect(ended.error).toMatchObject({ type: "GraphRecursionError" });
    });

    it("fails when the server cannot store", async () => {
        server.override = async ({ head }) =>
            head.op === "put"
                ? { error: { type: "Error", code: "gone", message: "the thread is deleted" } }
                : undefined;
        const { status, head } = await server.run(
            "chat",
            { input: say("a") },
            { thread: freshThread() },
        );
        server.override = undefined;
        expect(status).toBe("failed");
        expect(head.error).toMatchObject({ message: "the thread is deleted" });
    });

    it("answers after everything is stored", async () => {
        let open = 0;
        let stored = 0;
        server.override = async ({ head }) => {
            if (head.op !== "put" && head.op !== "writes") return undefined;
            open++;
            await new Promise((resolve) => setTimeout(resolve, 20));
            open--;
            stored++;
            return undefined;
        };
        await server.run(
            "fanout",
            { input: { items: ["a", "b", "c"] } },
            { thread: freshThread() },
        );
        server.override = undefined;
        expect(open).toBe(0);
        expect(stored).toBeGreaterThan(5);
    });

    it("pauses before and after nodes", async () => {
        const thread = freshThread();
        const first = await server.run(
            "nested",
            { input: { ask: false }, interrupt_before: ["middle"] },
            { thread },
        );
        expect(first).toMatchObject({ status: "interrupted", output: { path: ["before"] } });
        const second = await server.run(
            "nested",
            { input: null, interrupt_after: ["middle"] },
            { thread },
        );
        expect(second.status).toBe("interrupted");
        const third = await server.run("nested", { input: null }, { thread });
        expect(third.status).toBe("done");
        expect((third.output as { path: string[] }).path.at(-1)).toBe("after");
    });

    it("continues from any checkpoint", async () => {
        const thread = freshThread();
        await server.run("chat", { input: say("one") }, { thread });
        const { id } = server.store.checkpoints(thread)[0]!;
        await server.run("chat", { input: say("two") }, { thread });
        const other = await server.run(
            "chat",
            { input: say("three"), checkpoint_id: id },
            { thread },
        );
        const said = (other.output as { messages: Fields[] }).messages.map(
            ({ content }) => content,
        );
        expect(said).toEqual(["one", "you said: one", "three", "you said: three"]);
    });

    it("stores once at the end on request", async () => {
        const thread = freshThread();
        await server.run("chat", { input: say("one"), durability: "exit" }, { thread });
        expect(server.store.checkpoints(thread).length).toBe(1);
    });

    it("has a context, the store and the configuration of its function", async () => {
        const thread = freshThread();
        const config = { configurable: { thread_id: thread, suffix: "!" } };
        const first = await server.run(
            "more",
            { input: { word: "a" }, context: { user: "ann" }, config },
            { thread },
        );
        expect(first.status).toBe("done");
        expect(first.output).toMatchObject({
            seen: { before: null, count: 1, word: "a!", at: "1970-01-01T00:00:00.000Z" },
        });
        const second = await server.run(
            "more",
            { input: { word: "b" }, context: { user: "ann" } },
            { thread },
        );
        expect(second.output).toMatchObject({ seen: { before: "a", count: 1, word: "b" } });
        const ops = server.asked.filter(({ op }) => op === "items").length;
        expect(ops).toBeGreaterThan(4);
    });

    it("runs beside others", async () => {
        const all = Array.from({ length: 40 }, (_, i) =>
            server.run("chat", { input: say(`n${i}`) }, { thread: freshThread() }),
        );
        const outcomes = await Promise.all(all);
        for (const [i, { status, output }] of outcomes.entries()) {
            expect(status).toBe("done");
            expect(
                (output as { messages: Fields[] }).messages.map(({ content }) => content),
            ).toEqual([`n${i}`, `you said: n${i}`]);
        }
    });

    it("of a graph that does not exist fails", async () => {
        expect(await server.run("nothing", { input: {} })).toMatchObject({
            status: "failed",
            head: { error: { message: /nothing/ } },
        });
    });
});
