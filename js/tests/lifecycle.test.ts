/**
 * Stores with processes, threads and garbage collection: nothing crashes or hangs, and acknowledged
 * data is stored.
 */
import { spawn } from "node:child_process";
import { Worker } from "node:worker_threads";
import { emptyCheckpoint, uuid6 } from "@langchain/langgraph-checkpoint";
import { afterEach, describe, expect, it } from "vitest";
import { HeddleSaver, HeddleStore } from "../src/index.js";
import { closeSavers, collect, databases, saverOn, temporaryPath } from "./lib/stores.js";

const metadata = { source: "loop" as const, step: 0, parents: {} };
const heddle = new URL("../dist/index.js", import.meta.url).href;
const checkpoints = import.meta.resolve("@langchain/langgraph-checkpoint");

/** The start of every program below. */
const prelude = `
  import { HeddleSaver, HeddleStore } from ${JSON.stringify(heddle)};
  import { emptyCheckpoint, uuid6 } from ${JSON.stringify(checkpoints)};
  const metadata = { source: "loop", step: 0, parents: {} };
  const put = (saver, n, thread = "t") => {
    const checkpoint = { ...emptyCheckpoint(), id: uuid6(0), channel_values: { n }, channel_versions: { n: n + 1 } };
    return saver.put({ configurable: { thread_id: thread } }, checkpoint, metadata, { n: n + 1 });
  };
`;

interface Ended {
    readonly code: number | null;
    readonly signal: string | null;
    readonly output: string;
}

/** Runs a program; kills it after a minute, which fails its test. */
function run(program: string, flags: string[] = []): Promise<Ended> {
    return new Promise((resolve) => {
        const args = [...flags, "--input-type=module", "-e", prelude + program];
        const child = spawn(process.execPath, args, { stdio: ["ignore", "pipe", "pipe"] });
        let output = "";
        child.stdout.on("data", (data: Buffer) => (output += data));
        child.stderr.on("data", (data: Buffer) => (output += data));
        const timer = setTimeout(() => child.kill("SIGKILL"), 60_000);
        child.on("close", (code, signal) => {
            clearTimeout(timer);
            resolve({ code, signal, output });
        });
    });
}

function quoted(url: string): string {
    return JSON.stringify(url);
}

async function countIn(url: string): Promise<number> {
    const saver = HeddleSaver.fromConnString(url);
    try {
        return (await collect(saver.listHeaders({}))).length;
    } finally {
        await saver.close();
    }
}

function putOne(saver: HeddleSaver, n: number) {
    const checkpoint = {
        ...emptyCheckpoint(),
        id: uuid6(0),
        channel_values: { n },
        channel_versions: { n: n + 1 },
    };
    return saver.put({ configurable: { thread_id: "t" } }, checkpoint, metadata, { n: n + 1 });
}

afterEach(closeSavers);

describe.each(databases)("%s", (_database, freshUrl) => {
    it("an open store does not keep a process alive", async () => {
        const ended = await run(`
      const saver = HeddleSaver.fromConnString(${quoted(freshUrl())});
      await put(saver, 1);
      console.log("done");
    `);
        expect(ended).toEqual({ code: 0, signal: null, output: "done\n" });
    });

    it("pending work keeps the process alive until it is done", async () => {
        const ended = await run(`
      const saver = HeddleSaver.fromConnString(${quoted(freshUrl())});
      let done = 0;
      for (let i = 0; i < 50; i++) put(saver, i).then(() => done++);
      process.on("exit", () => console.log(done));
    `);
        expect(ended).toEqual({ code: 0, signal: null, output: "50\n" });
    });

    it("process.exit() with pending work", async () => {
        const ended = await run(`
      const saver = HeddleSaver.fromConnString(${quoted(freshUrl())});
      await saver.setup();
      for (let i = 0; i < 200; i++) put(saver, i);
      for (let i = 0; i < 20; i++) saver.getTuple({ configurable: { thread_id: "t" } });
      const list = saver.list({});
      list.next();
      setImmediate(() => process.exit(7));
    `);
        expect(ended).toEqual({ code: 7, signal: null, output: "" });
    });

    it("process.exit() while the store opens", async () => {
        const ended = await run(`
      HeddleSaver.fromConnString(${quoted(freshUrl())});
      process.exit(3);
    `);
        expect(ended).toEqual({ code: 3, signal: null, output: "" });
    });

    it("an uncaught error with pending work", async () => {
        const ended = await run(`
      const saver = HeddleSaver.fromConnString(${quoted(freshUrl())});
      await saver.setup();
      for (let i = 0; i < 100; i++) put(saver, i);
      throw new Error("on purpose");
    `);
        expect(ended.code).toBe(1);
        expect(ended.output).toContain("on purpose");
    });

    it("an unreachable store is garbage-collected", async () => {
        const ended = await run(
            `
      for (let round = 0; round < 5; round++) {
        await (async () => {
          const saver = HeddleSaver.fromConnString(${quoted(freshUrl())});
          await put(saver, round);
          const list = saver.list({});
          await list.next();
        })();
        await new Promise((resolve) => setTimeout(resolve, 10));
        globalThis.gc();
        await new Promise((resolve) => setTimeout(resolve, 10));
      }
      console.log("done");
    `,
            ["--expose-gc"],
        );
        expect(ended).toEqual({ code: 0, signal: null, output: "done\n" });
    });

    it("closing waits for pending operations and rejects later ones", async () => {
        const saver = saverOn(freshUrl());
        await saver.setup();
        const before = Array.from({ length: 100 }, (_, i) => putOne(saver, i));
        const reads = Array.from({ length: 20 }, () =>
            saver.getTuple({ configurable: { thread_id: "t" } }),
        );
        const list = saver.list({});
        // put() and getTuple() reach the store in a later turn of the event loop's microtasks.
        await new Promise((resolve) => setImmediate(resolve));
        const closed = saver.close();
        await expect(putOne(saver, 999)).rejects.toMatchObject({ code: "HEDDLE_ECLOSED" });
        await closed;
        expect(
            (await Promise.allSettled(before)).filter(({ status }) => status === "fulfilled")
                .length,
        ).toBe(100);
        await Promise.all(reads);
        await saver.close();
        await expect(saver.getTuple({ configurable: { thread_id: "t" } })).rejects.toMatchObject({
            code: "HEDDLE_ECLOSED",
        });
        await expect(list.next()).rejects.toMatchObject({ code: "HEDDLE_ECLOSED" });
    });

    it("closing in the middle of a listing ends it", async () => {
        const saver = saverOn(freshUrl());
        for (let i = 0; i < 30; i++) await putOne(saver, i);
        const list = saver.list({});
        expect((await list.next()).done).toBe(false);
        const pending = list.next();
        await saver.close();
        await pending.catch(() => undefined);
        await expect(collect(list)).rejects.toMatchObject({ code: "HEDDLE_ECLOSED" });
    });

    it("is disposed by `await using`", async () => {
        const store = await HeddleStore.open(freshUrl());
        await store[Symbol.asyncDispose]();
        await expect(store.check()).rejects.toMatchObject({ code: "HEDDLE_ECLOSED" });
        const saver = HeddleSaver.fromConnString(freshUrl());
        await saver[Symbol.asyncDispose]();
        await expect(putOne(saver, 1)).rejects.toMatchObject({ code: "HEDDLE_ECLOSED" });
    });

    it("works in worker threads", async () => {
        const url = _database === "memory" ? "memory:" : freshUrl();
        const worker = (i: number) =>
            new Promise<number>((resolve, reject) => {
                const program = `${prelude}
          import { parentPort } from "node:worker_threads";
          const saver = HeddleSaver.fromConnString(${quoted(url)});
          await Promise.all(Array.from({ length: 25 }, (_, n) => put(saver, n, "t${i}")));
          let count = 0;
          for await (const _ of saver.list({ configurable: { thread_id: "t${i}" } })) count++;
          parentPort.postMessage(count);`;
                const thread = new Worker(
                    new URL(`data:text/javascript,${encodeURIComponent(program)}`),
                );
                let count = 0;
                thread.on("message", (value: number) => (count = value));
                thread.on("error", reject);
                thread.on("exit", () => resolve(count));
            });
        expect(await Promise.all([0, 1, 2, 3].map(worker))).toEqual([25, 25, 25, 25]);
        if (_database !== "memory") expect(await countIn(url)).toBe(100);
    });

    it("survives terminated workers with pending work", async () => {
        const ended = await run(`
      import { Worker } from "node:worker_threads";
      const program = ${JSON.stringify(prelude)} + ${JSON.stringify(`
        import { parentPort } from "node:worker_threads";
        const saver = HeddleSaver.fromConnString(${quoted(freshUrl())});
        await saver.setup();
        parentPort.postMessage("ready");
        for (let n = 0; ; n++) {
          for (let i = 0; i < 20; i++) put(saver, n * 20 + i);
          saver.list({}).next();
          await saver.getTuple({ configurable: { thread_id: "t" } });
        }
      `)};
      for (let round = 0; round < 6; round++) {
        const worker = new Worker(new URL("data:text/javascript," + encodeURIComponent(program)));
        await new Promise((resolve) => worker.once("message", resolve));
        await new Promise((resolve) => setTimeout(resolve, round * 7));
        await worker.terminate();
      }
      console.log("alive");
    `);
        expect(ended).toEqual({ code: 0, signal: null, output: "alive\n" });
    });
});

describe("files and servers", () => {
    it.each(databases.filter(([name]) => name !== "memory"))(
        "%s has what was acknowledged before the process was killed",
        async (_name, freshUrl) => {
            const url = freshUrl();
            const ended = await run(`
        const saver = HeddleSaver.fromConnString(${quoted(url)});
        for (let i = 0; i < 30; i++) await put(saver, i);
        put(saver, 30);
        process.kill(process.pid, "SIGKILL");
      `);
            expect(ended.signal).toBe("SIGKILL");
            expect(await countIn(url)).toBeGreaterThanOrEqual(30);
        },
    );

    it.each(databases.filter(([name]) => name !== "memory"))(
        "%s has what was under way when the process exited",
        async (_name, freshUrl) => {
            const url = freshUrl();
            const ended = await run(`
        const saver = HeddleSaver.fromConnString(${quoted(url)});
        await saver.setup();
        for (let i = 0; i < 40; i++) put(saver, i);
        setImmediate(() => process.exit(0));
      `);
            expect(ended).toEqual({ code: 0, signal: null, output: "" });
            expect(await countIn(url)).toBe(40);
        },
    );

    it("a value over the limit is rejected and nothing is stored", async () => {
        const saver = saverOn(`sqlite:${temporaryPath()}?max_value=1000`);
        const checkpoint = {
            ...emptyCheckpoint(),
            channel_values: { n: "x".repeat(1001) },
            channel_versions: { n: 1 },
        };
        const put = saver.put({ configurable: { thread_id: "t" } }, checkpoint, metadata, { n: 1 });
        await expect(put).rejects.toMatchObject({ code: "HEDDLE_ELIMIT" });
        expect(await saver.getTuple({ configurable: { thread_id: "t" } })).toBeUndefined();
    });

    it("two savers of two processes share a file", async () => {
        const url = `sqlite:${temporaryPath()}`;
        const program = (thread: string) => `
      const saver = HeddleSaver.fromConnString(${quoted(url)});
      for (let i = 0; i < 40; i++) await put(saver, i, ${quoted(thread)});
    `;
        const ended = await Promise.all(["a", "b"].map((thread) => run(program(thread))));
        expect(ended.map(({ code, output }) => [code, output])).toEqual([
            [0, ""],
            [0, ""],
        ]);
        expect(await countIn(url)).toBe(80);
    });
});
