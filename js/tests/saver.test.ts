import { HumanMessage, type BaseMessage } from "@langchain/core/messages";
import { Send } from "@langchain/langgraph";
import {
    BaseCheckpointSaver,
    emptyCheckpoint,
    MemorySaver,
    uuid6,
    type Checkpoint,
    type CheckpointMetadata,
    type SerializerProtocol,
} from "@langchain/langgraph-checkpoint";
import { inspect } from "node:util";
import { afterEach, describe, expect, it, vi } from "vitest";
import { ForeignValue, HeddleSaver, HeddleStore } from "../src/index.js";
import { closeSavers, collect, databases, saverOn, temporaryPath } from "./lib/stores.js";

const metadata: CheckpointMetadata = { source: "loop", step: 0, parents: {} };

function at(thread_id: string, checkpoint_ns = "", checkpoint_id?: string) {
    return { configurable: { thread_id, checkpoint_ns, ...(checkpoint_id && { checkpoint_id }) } };
}

/** A checkpoint in which every channel has a new version. */
function checkpointOf(saver: HeddleSaver, channel_values: Record<string, unknown>, id = uuid6(0)) {
    const version = saver.getNextVersion(undefined);
    const channel_versions = Object.fromEntries(
        Object.keys(channel_values).map((key) => [key, version]),
    );
    const checkpoint: Checkpoint = { ...emptyCheckpoint(), id, channel_values, channel_versions };
    return [checkpoint, metadata, channel_versions] as const;
}

async function putValues(
    saver: HeddleSaver,
    thread: string,
    values: Record<string, unknown>,
    id?: string,
) {
    return saver.put(at(thread), ...checkpointOf(saver, values, id));
}

afterEach(closeSavers);

describe("versions", () => {
    const saver = saverOn("memory:");

    it("have the format of Python's", () => {
        expect(saver.getNextVersion(undefined)).toMatch(/^0{31}1\.0\.\d+/);
        const next = saver.getNextVersion("00000000000000000000000000000006.0.952780916680395");
        expect(next).toMatch(/^0{31}7\.\d/);
        expect(
            saver.getNextVersion("9".repeat(9)).startsWith("1".padStart(23, "0") + "0".repeat(9)),
        ).toBe(true);
    });

    it("are unique and ascending", () => {
        const versions = new Set(Array.from({ length: 1000 }, () => saver.getNextVersion("1.x")));
        expect(versions.size).toBe(1000);
        let version = saver.getNextVersion(undefined);
        for (let i = 0; i < 200; i++) {
            const next = saver.getNextVersion(version);
            expect(next > version).toBe(true);
            expect(next.localeCompare(version)).toBe(1);
            version = next;
        }
    });

    it("have no exponent, however small the random number is", () => {
        const spy = vi.spyOn(Math, "random");
        try {
            for (const number of [0, Number.MIN_VALUE, 5e-7, 0.1, 1 - 2 ** -53]) {
                spy.mockReturnValue(number);
                expect(saver.getNextVersion(undefined)).toMatch(/^0{31}1\.0\.\d{16}$/);
            }
        } finally {
            spy.mockRestore();
        }
    });

    it("stay numbers in threads that started with numbers", () => {
        const next = saver.getNextVersion(3 as never) as unknown as number;
        expect(typeof next).toBe("number");
        expect(next).toBeGreaterThanOrEqual(4);
        expect(next).toBeLessThan(5);
        expect(saver.getNextVersion(3 as never)).not.toBe(next);
        expect(saver.getNextVersion(next as never)).toBeGreaterThanOrEqual(5);
    });

    it("in another format are rejected", () => {
        expect(() => saver.getNextVersion("latest")).toThrow("not a channel version");
    });
});

describe.each(databases)("%s", (database, freshUrl) => {
    it("stores the values at the time of put()", async () => {
        const saver = saverOn(freshUrl());
        const message = new HumanMessage("before");
        const bytes = new Uint8Array([1, 2, 3]);
        const list: unknown[] = [message, bytes, { deep: ["x"] }];
        const meta = { ...metadata, note: { a: 1 } };
        const args = checkpointOf(saver, { list });
        const written = saver.put(at("t"), args[0], meta, args[2]);
        const writes: [string, unknown][] = [["w", list]];
        const wrote = saver.putWrites(at("t", "", args[0].id), writes, "task");
        message.content = "after";
        bytes[0] = 9;
        (list[2] as { deep: string[] }).deep.push("y");
        list.push("more");
        writes.push(["late", 1]);
        meta.note.a = 2;
        args[0].channel_values.list = "gone";
        args[0].channel_versions.list = "gone";
        await Promise.all([written, wrote]);
        const tuple = (await saver.getTuple(at("t")))!;
        const expected = [new HumanMessage("before"), new Uint8Array([1, 2, 3]), { deep: ["x"] }];
        expect(tuple.checkpoint.channel_values).toEqual({ list: expected });
        expect(tuple.pendingWrites).toEqual([["task", "w", expected]]);
        expect(tuple.metadata).toEqual({ ...metadata, note: { a: 1 } });
    });

    it("takes 500 puts at once", async () => {
        const saver = saverOn(freshUrl());
        const ids = Array.from({ length: 500 }, () => uuid6(0));
        await Promise.all(
            ids.flatMap((id, i) => [
                putValues(saver, `t${i % 10}`, { n: i, text: `é ${i}`.repeat(i % 50) }, id),
                saver.putWrites(at(`t${i % 10}`, "", id), [["w", i]], "task"),
            ]),
        );
        const found = await collect(saver.list({}));
        expect(found.length).toBe(500);
        expect(found.map(({ checkpoint }) => checkpoint.id)).toEqual([...ids].sort().reverse());
        for (const { checkpoint, config, pendingWrites } of found) {
            const i = ids.indexOf(checkpoint.id);
            expect(config.configurable!.thread_id).toBe(`t${i % 10}`);
            expect(checkpoint.channel_values).toEqual({ n: i, text: `é ${i}`.repeat(i % 50) });
            expect(pendingWrites).toEqual([["task", "w", i]]);
        }
    });

    it("keeps values of every kind, present null and undefined included", async () => {
        const saver = saverOn(freshUrl());
        const values = {
            nothing: null,
            absent: undefined,
            big: 2n ** 70n,
            when: new Date(5),
            map: new Map<unknown, unknown>([[1, new Set(["a"])]]),
            messages: [new HumanMessage({ content: "hi", id: "1" })] as BaseMessage[],
            pattern: /x/g,
            bytes: new Uint8Array(1000).fill(7),
            long: "ab\0ü😀".repeat(100_000),
            "": "empty name",
            __proto__x: 1,
        };
        await putValues(saver, "t", values);
        const { checkpoint } = (await saver.getTuple(at("t")))!;
        expect(checkpoint.channel_values).toStrictEqual(values);
        expect(checkpoint.channel_values.messages).toEqual(values.messages);
    });

    it("keeps metadata exactly and finds checkpoints by it", async () => {
        const saver = saverOn(freshUrl());
        const rich = {
            ...metadata,
            step: 7,
            score: 1.5,
            tags: ["a", "b"],
            nested: { x: { y: null } },
            gone: undefined,
        };
        const [checkpoint, , versions] = checkpointOf(saver, {});
        await saver.put(
            { configurable: { thread_id: "t", canary: "x" }, metadata: { leak: 1 } },
            checkpoint,
            rich,
            versions,
        );
        await putValues(saver, "t", {});
        const find = async (filter: object) =>
            (await collect(saver.list(at("t"), { filter }))).map((found) => found.metadata);
        expect(await find({ score: 1.5 })).toEqual([rich]);
        expect(await find({ nested: { x: {} }, tags: ["b"] })).toEqual([rich]);
        expect(await find({ score: 2 })).toEqual([]);
        expect(await find({ gone: undefined, step: 7 })).toEqual([rich]);
        expect((await find({})).length).toBe(2);
    });

    it("lists lazily and stops when its consumer does", async () => {
        const saver = saverOn(freshUrl());
        const ids = Array.from({ length: 150 }, () => uuid6(0));
        for (const id of ids) await putValues(saver, "t", { n: id }, id);
        const seen: string[] = [];
        for await (const { checkpoint } of saver.list(at("t"))) {
            seen.push(checkpoint.id);
            if (seen.length === 3) break;
        }
        expect(seen).toEqual(ids.slice(-3).reverse());
        const list = saver.list(at("t"));
        expect((await list.next()).value.checkpoint.id).toBe(ids.at(-1));
        // Deleted while it is listed: checkpoints not yet listed are omitted, or were already read.
        await saver.deleteThread("t");
        const rest = await collect(list);
        expect(rest.length).toBeLessThan(50);
        expect((await collect(saver.list(at("t")))).length).toBe(0);
    });

    it("lists with limit, before, an id, all namespaces and all threads", async () => {
        const saver = saverOn(freshUrl());
        const ids = Array.from({ length: 6 }, () => uuid6(0));
        for (const [i, id] of ids.entries()) {
            const ns = i % 2 ? "child:1|x" : "";
            await saver.put(at(i < 3 ? "a" : "b", ns), ...checkpointOf(saver, {}, id));
        }
        const listed = async (...args: Parameters<HeddleSaver["list"]>) =>
            (await collect(saver.list(...args))).map(({ checkpoint }) =>
                ids.indexOf(checkpoint.id),
            );
        expect(await listed({})).toEqual([5, 4, 3, 2, 1, 0]);
        expect(await listed({ configurable: { thread_id: "a" } })).toEqual([2, 1, 0]);
        expect(await listed(at("a"))).toEqual([2, 0]);
        expect(await listed(at("b", "child:1|x"))).toEqual([5, 3]);
        expect(await listed({}, { limit: 2 })).toEqual([5, 4]);
        expect(await listed({}, { limit: 0 })).toEqual([]);
        expect(await listed({}, { before: { configurable: { checkpoint_id: ids[2] } } })).toEqual([
            1, 0,
        ]);
        expect(await listed({}, { before: { configurable: {} } })).toEqual([5, 4, 3, 2, 1, 0]);
        expect(await listed({ configurable: { thread_id: "a", checkpoint_id: ids[1] } })).toEqual([
            1,
        ]);
        expect(await listed({ configurable: { thread_id: "" } })).toEqual([]);
    });

    it("lists headers, threads and usage", async () => {
        const saver = saverOn(freshUrl());
        const first = await putValues(saver, "b", { n: 1 });
        await saver.put(first, ...checkpointOf(saver, { n: 2 }));
        await putValues(saver, "a", { n: 3 });
        const headers = await collect(saver.listHeaders(at("b")));
        expect(headers.length).toBe(2);
        expect(headers[0]!.parentConfig).toEqual(first);
        expect(headers[0]!.metadata).toEqual(metadata);
        expect(headers[0]!.checkpoint).not.toHaveProperty("channel_values");
        expect(Object.keys(headers[1]!.checkpoint.channel_versions)).toEqual(["n"]);
        const threads = await collect(saver.listThreads());
        expect(threads.map(({ threadId }) => threadId)).toEqual(["a", "b"]);
        expect(Math.abs(threads[0]!.createdAt.getTime() - Date.now())).toBeLessThan(60_000);
        expect(threads[1]!.updatedAt >= threads[1]!.createdAt).toBe(true);
        expect(
            (await collect(saver.listThreads({ after: "a" }))).map(({ threadId }) => threadId),
        ).toEqual(["b"]);
        expect((await collect(saver.listThreads({ limit: 1 }))).length).toBe(1);
        const usage = await saver.threadUsage("b");
        expect(usage.checkpoints).toBe(2);
        expect(usage.bytes).toBeGreaterThan(0);
        expect(await saver.threadUsage("none")).toEqual({
            checkpoints: 0,
            writes: 0,
            chunks: 0,
            bytes: 0,
        });
    });

    it("deletes by run, copies and prunes", async () => {
        const saver = saverOn(freshUrl());
        const run = async (run_id: string, parent: object) => {
            const [checkpoint, , versions] = checkpointOf(saver, { text: run_id });
            return saver.put(
                parent as never,
                checkpoint,
                { ...metadata, run_id } as never,
                versions,
            );
        };
        const one = await run("r1", at("t"));
        const two = await run("r2", one);
        await saver.putWrites(two, [["w", new HumanMessage("x")]], "task");
        await saver.copyThread("t", "copy");
        await saver.copyThread("missing", "nowhere");
        const strip = (tuples: Awaited<ReturnType<typeof copyOf>>) =>
            tuples.map(({ checkpoint, metadata: found, pendingWrites }) => ({
                checkpoint,
                found,
                pendingWrites,
            }));
        const copyOf = (thread: string) => collect(saver.list(at(thread)));
        expect(strip(await copyOf("copy"))).toEqual(strip(await copyOf("t")));
        expect(await copyOf("nowhere")).toEqual([]);
        await expect(saver.copyThread("t", "copy")).rejects.toMatchObject({
            code: "HEDDLE_EEXISTS",
        });
        await saver.deleteForRuns([]);
        await saver.deleteForRuns(["r1", "unknown"]);
        expect(
            (await collect(saver.list({}))).map((tuple) => (tuple.metadata as any).run_id),
        ).toEqual(["r2", "r2"]);
        await run("r3", two);
        await saver.prune(["t", "missing"]);
        expect((await copyOf("t")).map((tuple) => tuple.checkpoint.channel_values)).toEqual([
            { text: "r3" },
        ]);
        await saver.prune([], { strategy: "delete" });
        await saver.prune(["copy"], { strategy: "delete" });
        expect(await copyOf("copy")).toEqual([]);
        await expect(saver.prune(["t"], { strategy: "shred" as never })).rejects.toThrow(
            "unknown strategy",
        );
        await saver.deleteThread("t");
        expect(await saver.getTuple(at("t"))).toBeUndefined();
    });

    it("replaces special writes and keeps the first of the others", async () => {
        const saver = saverOn(freshUrl());
        const config = await putValues(saver, "t", {});
        await saver.putWrites(
            config,
            [
                ["a", 1],
                ["__resume__", ["x"]],
            ],
            "task",
        );
        await saver.putWrites(
            config,
            [
                ["a", 2],
                ["__resume__", ["x", "y"]],
            ],
            "task",
        );
        await saver.putWrites(config, [], "task");
        await saver.putWrites(config, [["__interrupt__", { id: "1", value: "q?" }]], "b");
        expect((await saver.getTuple(config))!.pendingWrites).toEqual([
            ["b", "__interrupt__", { id: "1", value: "q?" }],
            ["task", "__resume__", ["x", "y"]],
            ["task", "a", 1],
        ]);
    });

    it("accepts writes before their checkpoint", async () => {
        const saver = saverOn(freshUrl());
        const id = uuid6(0);
        await saver.putWrites(at("t", "", id), [["w", 1]], "task");
        expect(await saver.getTuple(at("t"))).toBeUndefined();
        await putValues(saver, "t", {}, id);
        expect((await saver.getTuple(at("t")))!.pendingWrites).toEqual([["task", "w", 1]]);
    });

    it("moves the pending Sends of an old checkpoint into it", async () => {
        const saver = saverOn(freshUrl());
        const parent = await putValues(saver, "t", {});
        await saver.putWrites(parent, [["__pregel_tasks", new Send("n", 1)]], "1");
        await saver.putWrites(
            parent,
            [
                ["other", 1],
                ["__pregel_tasks", new Send("m", { x: 2 })],
            ],
            "2",
        );
        const old: Checkpoint = {
            ...emptyCheckpoint(),
            v: 1,
            channel_values: {},
            channel_versions: { a: 2, b: 10 },
        };
        const config = await saver.put(parent, old, metadata, {});
        const expected = [
            { node: "n", args: 1 },
            { node: "m", args: { x: 2 } },
        ];
        const { checkpoint } = (await saver.getTuple(config))!;
        expect(checkpoint.channel_values).toEqual({ __pregel_tasks: expected });
        expect(checkpoint.channel_versions).toEqual({ a: 2, b: 10, __pregel_tasks: 10 });
        const [listed] = await collect(saver.list(at("t")));
        expect(listed!.checkpoint).toEqual(checkpoint);
    });

    it("separates users by principal", async () => {
        const store = await HeddleStore.open(freshUrl());
        try {
            const [ann, bob] = ["ann", "bob"].map(
                (principal) => new HeddleSaver(store, { principal }),
            );
            await putValues(ann!, "t", { secret: 1 });
            expect(await bob!.getTuple(at("t"))).toBeUndefined();
            expect(await collect(bob!.list({}))).toEqual([]);
            expect(await collect(bob!.listThreads())).toEqual([]);
            await putValues(bob!, "t", { secret: 2 });
            await bob!.deleteThread("t");
            const tuple = (await ann!.getTuple(at("t")))!;
            expect(tuple.checkpoint.channel_values).toEqual({ secret: 1 });
            expect(tuple.config.configurable!.thread_id).toBe("t");
            // Savers on a shared store leave it open.
            await ann!.close();
            expect(await ann!.getTuple(at("t"))).toBeDefined();
            expect(() => new HeddleSaver(store, { principal: "a:b" })).toThrow("':'");
        } finally {
            await store.close();
        }
    });

    it("uses a custom serializer for all values", async () => {
        const stock = new MemorySaver().serde;
        const tags: string[] = [];
        const serde: SerializerProtocol = {
            async dumpsTyped(value) {
                const [type, data] = await stock.dumpsTyped(value);
                tags.push(`x-${type}`);
                return [`x-${type}`, data];
            },
            loadsTyped: (type, data) => stock.loadsTyped(type.slice(2), data),
        };
        const saver = saverOn(freshUrl(), { serde });
        const bytes = new Uint8Array([1, 2]);
        const config = saver.put(
            at("t"),
            ...checkpointOf(saver, { bytes, m: new HumanMessage("x") }),
        );
        bytes[0] = 9;
        await saver.putWrites(await config, [["__interrupt__", { id: "1", value: 2 }]], "task");
        const tuple = (await saver.getTuple(at("t")))!;
        expect(tuple.checkpoint.channel_values).toEqual({
            bytes: Buffer.from([1, 2]),
            m: new HumanMessage("x"),
        });
        expect(tuple.pendingWrites).toEqual([["task", "__interrupt__", { id: "1", value: 2 }]]);
        expect(tags).toEqual(["x-bytes", "x-json", "x-json"]);
    });

    it("keeps unknown values unchanged", async () => {
        const url = freshUrl();
        const python: SerializerProtocol = {
            dumpsTyped: async (value) => ["msgpack", value as Uint8Array],
            loadsTyped: async (_type, data) => data,
        };
        const store = await HeddleStore.open(url);
        try {
            const [writer, reader] = [
                new HeddleSaver(store, { serde: python }),
                new HeddleSaver(store),
            ];
            await putValues(writer, "t", { model: new Uint8Array([0x81, 1]) });
            const found = (await reader.getTuple(at("t")))!.checkpoint.channel_values
                .model as ForeignValue;
            expect(found).toBeInstanceOf(ForeignValue);
            await putValues(reader, "u", { model: found });
            const back = (await writer.getTuple(at("u")))!.checkpoint.channel_values
                .model as Uint8Array;
            expect([...back]).toEqual([0x81, 1]);
        } finally {
            await store.close();
        }
    });

    it("reports invalid arguments by name", async () => {
        const saver = saverOn(freshUrl());
        const args = checkpointOf(saver, { n: 1 });
        await expect(saver.put({}, ...args)).rejects.toThrow("configurable");
        await expect(saver.put({ configurable: {} }, ...args)).rejects.toThrow("thread_id");
        await expect(saver.put(at(""), ...args)).rejects.toThrow("thread_id");
        await expect(saver.put(at({} as never), ...args)).rejects.toThrow(
            "thread_id must be a string",
        );
        await expect(saver.put(at("\ud800"), ...args)).rejects.toThrow("unpaired surrogate");
        await expect(
            saver.putWrites({ configurable: { checkpoint_id: "x" } }, [], "t"),
        ).rejects.toThrow("thread_id");
        await expect(saver.putWrites(at("t"), [], "t")).rejects.toThrow("checkpoint_id");
        await expect(
            saver.put(at("t"), { ...args[0], id: "" }, metadata, {}),
        ).rejects.toMatchObject({ code: "HEDDLE_EINVAL" });
        await expect(
            saver.put(at("t"), args[0], metadata, { n: true as never }),
        ).rejects.toMatchObject({ code: "HEDDLE_EINVAL" });
        await expect(putValues(saver, "t", { f: () => 1 })).rejects.toThrow(
            "a function cannot be stored",
        );
        await expect(saver.put(at("t"), args[0], [] as never, {})).rejects.toMatchObject({
            code: "HEDDLE_EINVAL",
        });
        expect(await saver.getTuple({})).toBeUndefined();
        expect(await saver.getTuple({ configurable: {} })).toBeUndefined();
        expect(await saver.getTuple(at("t"))).toBeUndefined();
        expect(await collect(saver.list({}))).toEqual([]);
    });

    it("accepts numbers as thread ids", async () => {
        const saver = saverOn(freshUrl());
        const config = await saver.put(
            { configurable: { thread_id: 7 } },
            ...checkpointOf(saver, { n: 1 }),
        );
        expect(config.configurable!.thread_id).toBe(7);
        expect(
            (await saver.getTuple({ configurable: { thread_id: 7 } }))!.checkpoint.channel_values,
        ).toEqual({ n: 1 });
    });

    it("checks and compacts", async () => {
        const store = await HeddleStore.open(freshUrl());
        try {
            const saver = new HeddleSaver(store);
            await putValues(saver, "t", { text: "x".repeat(100_000) });
            await store.check();
            await saver.deleteThread("t");
            await store.compact();
            await store.check();
        } finally {
            await store.close();
        }
    });

    it("does not reveal its connection", async () => {
        const url = freshUrl();
        const saver = saverOn(url);
        await saver.setup();
        expect(saver).toBeInstanceOf(BaseCheckpointSaver);
        expect(JSON.stringify({ saver })).toBe('{"saver":"[HeddleSaver]"}');
        const secret = url.replace(/\?.*/, "");
        if (database === "memory")
            expect(inspect(saver, { depth: 10, showHidden: true })).not.toContain("memory:");
        else expect(inspect(saver, { depth: 10, showHidden: true })).not.toContain(secret);
    });
});

describe("an invalid URL", () => {
    it.each([
        ["of an unknown kind", "oracle://x", "HEDDLE_EINVAL", "oracle"],
        ["without a kind", "just text", "HEDDLE_EINVAL", ""],
        ["empty", "", "HEDDLE_EINVAL", ""],
        ["with a strange parameter", "memory:?durability=maybe", "HEDDLE_EINVAL", "durability"],
        [
            "in a directory that is not there",
            "sqlite:/nonexistent/dir/x.db",
            "HEDDLE_",
            "/nonexistent/dir",
        ],
    ])("%s", async (_name, url, code, text) => {
        const error = await HeddleStore.open(url).then(
            () => undefined,
            (reason: Error & { code: string }) => reason,
        );
        expect(error).toBeInstanceOf(Error);
        expect(error!.code).toContain(code);
        expect(error!.message).toContain(text);
        const saver = HeddleSaver.fromConnString(url);
        await expect(saver.setup()).rejects.toThrow(error!.message);
        await expect(saver.getTuple(at("t"))).rejects.toThrow(error!.message);
        await expect(saver.put(at("t"), ...checkpointOf(saver, {}))).rejects.toThrow(
            error!.message,
        );
        await expect(collect(saver.list({}))).rejects.toThrow(error!.message);
        await saver.close();
    });

    it("of an unreachable server is rejected", async () => {
        const error: Error = await HeddleStore.open(
            "postgresql://nobody:hidden@127.0.0.1:1/x?timeout=1",
        ).then(
            () => new Error("opened"),
            (reason: Error) => reason,
        );
        expect(error).toMatchObject({ code: "HEDDLE_EUNAVAILABLE" });
        expect(error.message).not.toContain("hidden");
    });

    it("of a file that is not a database is rejected", async () => {
        const { writeFileSync } = await import("node:fs");
        const path = temporaryPath("junk");
        writeFileSync(path, "not a database, ".repeat(100));
        await expect(HeddleStore.open(`sqlite:${path}`)).rejects.toMatchObject({
            code: "HEDDLE_ECORRUPT",
        });
    });

    it("that is not a URL at all is rejected", () => {
        expect(() => HeddleSaver.fromConnString(7 as never)).toThrow(TypeError);
        expect(() => new HeddleSaver({} as never)).toThrow("HeddleStore");
    });
});
