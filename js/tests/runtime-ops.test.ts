/** Operations of a worker other than runs. */
import { cpSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { Fields } from "../src/runtime/frame.js";
import { folder, graphs } from "./lib/project.js";
import { FrameType, StubServer, type Ended } from "./lib/stub-server.js";

const packageDir = dirname(dirname(folder));
const project = {
    folder,
    graphs: { ...graphs, delegating: { path: "../lib/delegating.ts:graph" } },
    auth: { path: "./auth.ts" },
    app: { path: "./app.ts:app" },
    embed: { path: "./embed.ts:embed" },
    index: { dims: 2, fields: ["$"] },
};

let server: StubServer;
beforeAll(async () => {
    server = await StubServer.start(project);
});
afterAll(() => server.close());

const call = (head: Fields, blobs: (string | Buffer)[] = []) => server.call(head, { blobs }).ended;
const json = ({ blobs }: Ended) => JSON.parse(blobs[0]!.toString()) as Fields;

describe("ready", () => {
    it("lists graphs and parts", () => {
        expect(server.hello).toMatchObject({
            protocol: 1,
            runtime: "js",
            version: "0.1.0",
            key: "k",
            pid: server.pid,
            langgraph: "1.4.18",
        });
        const loaded = server.ready!.graphs as Record<string, Fields>;
        expect(Object.entries(loaded).filter(([, graph]) => graph.error)).toEqual([]);
        expect(Object.keys(loaded)).toEqual(Object.keys(project.graphs));
        expect(loaded.chat!.structure).toEqual({
            kind: "graph",
            channels: {
                messages: "BinaryOperatorAggregate",
                __start__: "EphemeralValue",
                "branch:to:chat": "EphemeralValue",
                __pregel_tasks: "Topic",
            },
            reducers: { messages: "messages" },
            initial: { messages: [] },
            stream_channels: ["messages"],
            output_channels: ["messages"],
            input_channels: "__start__",
            nodes: {
                __start__: {
                    triggers: ["__start__"],
                    subgraph: null,
                    deferred: false,
                    metadata: {},
                    checkpointer: null,
                },
                chat: {
                    triggers: ["branch:to:chat"],
                    subgraph: null,
                    deferred: false,
                    metadata: {},
                    checkpointer: null,
                },
            },
            interrupt_before: [],
            interrupt_after: [],
        });
        expect(loaded.fanout!.structure).toMatchObject({ reducers: {}, initial: { results: [] } });
        expect(loaded.nested!.structure).toMatchObject({
            nodes: { middle: { subgraph: { nodes: { leaf: {} } } } },
        });
        expect(loaded.entry!.structure).toMatchObject({
            kind: "functional",
            output_channels: "__end__",
        });
    });

    it("returns schemas", () => {
        const loaded = server.ready!.graphs as Record<string, { schemas: Fields }>;
        expect(loaded.more!.schemas).toMatchObject({
            input: { properties: { word: { type: "string" } } },
            config: { properties: { user: { type: "string" } } },
        });
        expect(loaded.chat!.schemas).toMatchObject({
            input: { properties: { messages: { type: "array" } } },
            config: null,
        });
    });

    it("lists handlers and other loaded parts", () => {
        expect(server.ready!.auth).toEqual({
            handlers: ["threads.create", "threads", "store", "*"],
        });
        expect(server.ready!.app).toEqual({
            routes: [],
            middleware: false,
            openapi: { paths: {}, schemas: {} },
        });
        expect(server.ready!.embed).toEqual({});
    });
});

describe("a worker", () => {
    it("answers a ping", async () => {
        expect(await call({ op: "ping" })).toMatchObject({ type: FrameType.Answer, head: {} });
    });

    it("rejects unknown operations", async () => {
        expect(await call({ op: "dance" })).toMatchObject({
            type: FrameType.Error,
            head: { code: "invalid" },
        });
    });

    it("draws", async () => {
        const drawn = json(
            await call({ op: "draw", graph: "nested", config: {}, xray: false }),
        ) as { nodes: Fields[]; edges: Fields[] };
        expect(drawn.nodes.map(({ id }) => id)).toEqual([
            "__start__",
            "before",
            "middle",
            "after",
            "__end__",
        ]);
        expect(drawn.edges).toContainEqual(
            expect.objectContaining({ source: "before", target: "middle" }),
        );
        const deep = json(await call({ op: "draw", graph: "nested", config: {}, xray: true })) as {
            nodes: Fields[];
        };
        expect(deep.nodes.map(({ id }) => id)).toContain("middle:leaf");
    });

    it("lists subgraphs", async () => {
        const found = json(
            await call({
                op: "subgraphs",
                graph: "nested",
                config: {},
                namespace: null,
                recurse: true,
            }),
        );
        expect(Object.keys(found)).toEqual(["middle"]);
        expect(found.middle).toMatchObject({ state: { properties: { answer: {} } } });
        expect(
            json(
                await call({
                    op: "subgraphs",
                    graph: "chat",
                    config: {},
                    namespace: null,
                    recurse: true,
                }),
            ),
        ).toEqual({});
    });

    it("updates a thread", async () => {
        const thread = "updated";
        const run = (head: Fields) => server.run("questions", head, { thread });
        await run({ input: {} });
        const supersteps = [[{ values: { name: "Ann", city: "Oslo" }, as_node: "ask" }]];
        const { head, type } = await server.call(
            {
                op: "update",
                graph: "questions",
                thread_id: thread,
                config: {},
                supersteps: { $blob: 0 },
            },
            { thread, blobs: [JSON.stringify(supersteps)] },
        ).ended;
        expect(type).toBe(FrameType.Answer);
        const [latest] = server.store.checkpoints(thread);
        expect(head).toMatchObject({ checkpoint_ns: "", checkpoint_id: latest!.id });
        expect(latest!.metadata).toMatchObject({ source: "update", step: 1 });
        expect((await run({ input: null })).output).toMatchObject({ greeting: "Ann of Oslo" });
    });

    it("updates in several steps, and by a command", async () => {
        const thread = "made";
        const supersteps = [
            [{ values: { messages: [{ role: "user", content: "hello" }] }, as_node: "__start__" }],
            [
                {
                    command: { update: { messages: [{ role: "assistant", content: "hi" }] } },
                    as_node: "chat",
                },
            ],
        ];
        const { type } = await server.call(
            { op: "update", graph: "chat", thread_id: thread, config: {}, supersteps },
            { thread },
        ).ended;
        expect(type).toBe(FrameType.Answer);
        const { output } = await server.run(
            "chat",
            { input: { messages: [{ role: "user", content: "more" }] } },
            { thread },
        );
        expect((output as { messages: Fields[] }).messages.map(({ content }) => content)).toEqual([
            "hello",
            "hi",
            "more",
            "you said: more",
        ]);
    });

    it("rejects an update without a matching node", async () => {
        const supersteps = [[{ values: { name: "Ann" }, as_node: "nobody" }]];
        const { type, head } = await call({
            op: "update",
            graph: "questions",
            thread_id: "x",
            config: {},
            supersteps,
        });
        expect(type).toBe(FrameType.Error);
        expect(head).toMatchObject({ type: "InvalidUpdateError" });
    });

    it("embeds", async () => {
        const { blobs } = await call({ op: "embed" }, [JSON.stringify(["ab cd", "x"])]);
        const numbers = Array.from({ length: 4 }, (_, i) => blobs[0]!.readFloatLE(4 * i));
        expect(numbers).toEqual([5, 2, 1, 1]);
    });

    it("lets graphs call other assistants", async () => {
        server.override = async ({ head, blobs }) => {
            if (head.op !== "delegate") return undefined;
            expect(head).toMatchObject({
                assistant: "other",
                key: expect.stringMatching(/^ask:.*#1$/),
            });
            return {
                head: { status: "done" },
                blobs: [JSON.stringify({ heard: JSON.parse(blobs[0]!.toString()) })],
            };
        };
        const done = await server.run(
            "delegating",
            { input: { question: "why?" } },
            { thread: "d1" },
        );
        expect(done).toMatchObject({
            status: "done",
            output: { answer: { heard: { question: "why?" } } },
        });
        server.override = async ({ head }) =>
            head.op === "delegate"
                ? { head: { status: "failed", error: { message: "no such thing" } } }
                : undefined;
        const failed = await server.run(
            "delegating",
            { input: { question: "why?" } },
            { thread: "d2" },
        );
        server.override = undefined;
        expect(failed).toMatchObject({
            status: "failed",
            head: { error: { type: "DelegateError", message: 'assistant "other": no such thing' } },
        });
    });
});

describe("auth", () => {
    const authenticate = (authorization: string) =>
        call({
            op: "authenticate",
            method: "GET",
            path: "/threads",
            query: "",
            headers: { authorization },
            path_params: {},
        });

    it("authenticates users", async () => {
        expect((await authenticate("Bearer ann")).head).toEqual({
            user: {
                identity: "ann",
                permissions: ["read"],
                display_name: "ann",
                is_authenticated: true,
                path: "/threads",
            },
        });
        expect((await authenticate("Bearer bob")).head).toMatchObject({
            user: { identity: "bob", permissions: [] },
        });
    });

    it("rejects other credentials", async () => {
        expect(await authenticate("Bearer eve")).toMatchObject({
            type: FrameType.Error,
            head: {
                status: 401,
                message: "who are you?",
                headers: { "www-authenticate": "Bearer" },
            },
        });
        expect(await authenticate("Bearer nobody")).toMatchObject({
            type: FrameType.Error,
            head: { type: "TypeError" },
        });
        const broken = await authenticate("Bearer broken");
        expect(broken).toMatchObject({
            type: FrameType.Error,
            head: { type: "TypeError", file: join(folder, "auth.ts"), line: 10 },
        });
        expect(broken.head).not.toHaveProperty("status");
    });

    const authorize = (handler: string, resource: string, action: string, value: Fields) =>
        call(
            {
                op: "authorize",
                handler,
                resource,
                action,
                user: { identity: "ann", permissions: [] },
                value: { $blob: 0 },
            },
            [JSON.stringify(value)],
        );

    it("filters, changes and denies", async () => {
        expect(
            (await authorize("threads.create", "threads", "create", { metadata: { a: 1 } })).head,
        ).toEqual({
            allow: true,
            filter: { owner: "ann" },
            value: { metadata: { a: 1, owner: "ann" } },
        });
        expect((await authorize("threads", "threads", "read", { thread_id: "x" })).head).toEqual({
            allow: true,
            filter: { owner: "ann" },
        });
        expect((await authorize("store", "store", "get", {})).head).toEqual({ allow: false });
        expect(await authorize("*", "crons", "read", {})).toMatchObject({
            type: FrameType.Error,
            head: { status: 403, message: "not this" },
        });
        expect(await authorize("nothing", "crons", "read", {})).toMatchObject({
            type: FrameType.Error,
        });
    });
});

describe("an app", () => {
    const request = (method: string, path: string, body = "", query = "") =>
        call(
            {
                op: "request",
                method,
                path,
                query,
                headers: [
                    ["host", "example.com"],
                    ["x-via", "heddle"],
                ],
                user: null,
            },
            [body],
        );

    it("answers", async () => {
        const { pieces, type } = await request("POST", "/echo", "hello", "q=a%20b");
        expect(type).toBe(FrameType.Answer);
        expect(pieces[0]!.head).toMatchObject({
            status: 200,
            headers: [["content-type", "application/json"]],
        });
        const body = Buffer.concat(pieces.slice(1).flatMap(({ blobs }) => blobs)).toString();
        expect(JSON.parse(body)).toEqual({
            method: "POST",
            body: "hello",
            q: "a b",
            via: "heddle",
        });
        expect((await request("GET", "/nothing")).pieces[0]!.head.status).toBe(404);
    });

    it("streams", async () => {
        const { pieces } = await request("GET", "/stream");
        expect(pieces.slice(1).map(({ blobs }) => blobs[0]!.toString())).toEqual([
            "one ",
            "two ",
            "three",
        ]);
    });

    it("fails", async () => {
        expect(await request("GET", "/fail")).toMatchObject({
            type: FrameType.Error,
            head: { message: "the app failed", line: 25 },
        });
    });
});

describe("a project", () => {
    const directory = mkdtempSync(join(tmpdir(), "heddle-project-"));
    symlinkSync(join(packageDir, "node_modules"), join(directory, "node_modules"));
    afterAll(() => rmSync(directory, { recursive: true, force: true }));

    it("is reported although parts of it fail to load", async () => {
        cpSync(join(folder, "questions.ts"), join(directory, "good.ts"));
        writeFileSync(join(directory, "syntax.ts"), "export const graph = (\n  1 +\n;\n");
        writeFileSync(join(directory, "throws.ts"), "\nthrow new Error('while loading');\n");
        writeFileSync(join(directory, "wrong.ts"), "export const graph = 7;\n");
        writeFileSync(
            join(directory, "needy.ts"),
            "export const graph = (config: any) => { throw new Error('needs more'); };\n",
        );
        writeFileSync(join(directory, "common.cjs"), "exports.graph = 1;\n");
        const names = ["good", "syntax", "throws", "wrong", "missing", "needy"];
        const entries = Object.fromEntries(
            names.map((name) => [name, { path: `./${name}.ts:graph` }]),
        );
        const stub = await StubServer.start({
            folder: directory,
            graphs: {
                ...entries,
                nameless: { path: "./good.ts:other" },
                common: { path: "./common.cjs:graph" },
            },
            auth: { path: "./good.ts:graph" },
        });
        const loaded = stub.ready!.graphs as Record<
            string,
            { error?: Fields; structure?: unknown }
        >;
        expect(loaded.good!.error).toBe(undefined);
        expect(loaded.good!.structure).not.toBe(null);
        expect(loaded.syntax!.error).toMatchObject({ file: join(directory, "syntax.ts"), line: 3 });
        expect(loaded.throws!.error).toMatchObject({
            message: "while loading",
            file: join(directory, "throws.ts"),
            line: 2,
        });
        expect(loaded.wrong!.error).toMatchObject({
            message: expect.stringContaining("not a graph"),
        });
        expect(loaded.missing!.error).toMatchObject({
            message: expect.stringContaining("missing.ts"),
        });
        expect(loaded.nameless!.error).toMatchObject({
            message: expect.stringContaining('no export "other"; it has graph'),
        });
        expect(loaded.common!.error).toMatchObject({
            message: expect.stringContaining("not a graph"),
        });
        expect(loaded.needy).toEqual({
            structure: null,
            schemas: null,
            types: true,
            runtime_only: false,
        });
        expect(stub.ready!.auth).toMatchObject({
            error: { message: expect.stringContaining("not an Auth") },
        });
        expect((await stub.run("good", { input: {} })).status).toBe("interrupted");
        await stub.close();
    });

    it("reports changed files once", async () => {
        cpSync(join(folder, "questions.ts"), join(directory, "good.ts"));
        const stub = await StubServer.start({
            folder: directory,
            graphs: { good: { path: "./good.ts:graph" } },
            reload: true,
        });
        const changed = new Promise<Fields>((resolve) => {
            stub.override = async ({ head }) =>
                head.op === "changed" ? (resolve(head), {}) : undefined;
        });
        writeFileSync(join(directory, "new.ts"), "export {};\n");
        expect((await changed).files).toEqual([join(directory, "new.ts")]);
        await stub.close();
    });

    it("reports the code that blocks the event loop", async () => {
        const done = join(directory, "done");
        writeFileSync(
            join(directory, "busy.ts"),
            `import { existsSync } from "node:fs";
       import { Annotation, START, StateGraph } from "@langchain/langgraph";
       function computeForLong() {
         for (const end = Date.now() + 60_000; !existsSync(${JSON.stringify(done)}) && Date.now() < end; );
         return {};
       }
       export const graph = new StateGraph(Annotation.Root({ n: Annotation<number> }))
         .addNode("busy", () => computeForLong()).addEdge(START, "busy").compile();`,
        );
        const stub = await StubServer.start({
            folder: directory,
            graphs: { busy: { path: "./busy.ts:graph" } },
            reload: true,
        });
        const { ended } = stub.begin("busy", { input: { n: 1 } });
        const blocked = /the event loop is blocked.*\n {4}at computeForLong \(.*busy\.ts\)/;
        while (!blocked.test(stub.log.join("")))
            await new Promise((resolve) => setTimeout(resolve, 50));
        writeFileSync(done, "");
        expect((await ended).head.status).toBe("done");
        await stub.close();
    });

    it("ends when no call is running", async () => {
        const stub = await StubServer.start({ folder, graphs: { slow: graphs.slow } });
        const working = stub.begin(
            "slow",
            { input: {}, modes: ["custom"] },
            { onPiece: () => (begun = true) },
        );
        let begun = false;
        let drained = false;
        const drain = stub.call({ op: "drain" });
        void drain.ended.then(() => (drained = true));
        while (!begun) await stub.call({ op: "ping" }).ended;
        expect(drained).toBe(false);
        stub.send(FrameType.Cancel, working.id, {});
        expect((await working.ended).head.status).toBe("cancelled");
        expect((await drain.ended).type).toBe(FrameType.Answer);
        await stub.exited();
        await stub.close();
    });

    it("ends with its server", async () => {
        const stub = await StubServer.start({ folder, graphs: { slow: graphs.slow } });
        stub.begin("slow", { input: {} });
        await stub.close();
    });

    it("ends when the server sends an invalid frame", async () => {
        const stub = await StubServer.start({ folder, graphs: { slow: graphs.slow } });
        stub.sendBytes(Buffer.alloc(16, 0xff));
        await stub.exited();
        await stub.close();
    });
});
