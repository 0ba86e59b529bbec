import assert from "node:assert/strict";
import { describe, test } from "node:test";
import {
    beyondPeer,
    client,
    human,
    isPeer,
    newThread,
    refused,
    texts,
    unknown,
    until,
} from "./lib.mjs";

const LONG = { ms: 600_000 };
const running = (thread, run) => () =>
    client.runs.get(thread, run.run_id).then((found) => found.status === "running");

describe("runs", () => {
    test("are made, joined, listed, deleted", async () => {
        const thread = await newThread();
        let made;
        const run = await client.runs.create(thread, "echo", {
            input: human("hi"),
            metadata: { purpose: "js" },
            onRunCreated: (params) => (made = params),
        });
        assert.deepEqual(made, { run_id: run.run_id, thread_id: thread });
        assert.deepEqual(texts(await client.runs.join(thread, run.run_id)), ["hi", "You said: hi"]);
        const found = await client.runs.get(thread, run.run_id);
        assert.deepEqual([found.status, found.metadata.purpose], ["success", "js"]);
        assert.deepEqual(
            (await client.runs.list(thread, { status: "success" })).map((each) => each.run_id),
            [run.run_id],
        );
        await client.runs.delete(thread, run.run_id);
        await refused(client.runs.get(thread, run.run_id), 404);
    });

    test("list the selected members", beyondPeer("always lists whole runs"), async () => {
        const thread = await newThread();
        await client.runs.wait(thread, "echo", { input: human("hi") });
        assert.deepEqual(await client.runs.list(thread, { select: ["status"], limit: 1 }), [
            { status: "success" },
        ]);
    });

    test("are waited for", async () => {
        const thread = await newThread();
        assert.deepEqual(texts(await client.runs.wait(thread, "echo", { input: human("hi") })), [
            "hi",
            "You said: hi",
        ]);
        assert.deepEqual(texts(await client.runs.wait(null, "echo", { input: human("alone") })), [
            "alone",
            "You said: alone",
        ]);
        const created = await client.runs.wait(unknown(), "echo", {
            input: human("new"),
            ifNotExists: "create",
        });
        assert.deepEqual(texts(created), ["new", "You said: new"]);
    });

    test("that fail", async () => {
        const thread = await newThread();
        await assert.rejects(client.runs.wait(thread, "failing", { input: { log: [] } }), /boom/);
        const values = await client.runs.wait(thread, "failing", {
            input: { log: [] },
            raiseError: false,
        });
        assert.match(values.__error__.message, /boom/);
        assert.equal((await client.threads.get(thread)).status, "error");
    });

    test("stop and continue", async () => {
        const thread = await newThread();
        const first = await client.runs.wait(thread, "approval", { input: human("hi") });
        assert.equal(first.__interrupt__[0].value.question, "Shall I answer?");
        const values = await client.runs.wait(thread, "approval", { command: { resume: "yes" } });
        assert.deepEqual(texts(values), ["hi", "Approved: yes"]);
    });

    test("answer several questions by id", async () => {
        const thread = await newThread();
        await client.runs.wait(thread, "panel", { input: { log: [] } });
        const { tasks } = await client.threads.getState(thread);
        const resume = Object.fromEntries(tasks.map((task) => [task.interrupts[0].id, task.name]));
        const values = await client.runs.wait(thread, "panel", { command: { resume } });
        assert.deepEqual(values.log.sort(), ["left: left", "right: right"]);
    });

    test("in a batch", async () => {
        const runs = await client.runs.createBatch([
            { assistantId: "echo", input: human("one") },
            { assistantId: "loop", input: { count: 0 }, streamMode: ["values"] },
        ]);
        assert.equal(new Set(runs.map((run) => run.run_id)).size, 2);
    });

    test("are cancelled", async () => {
        const thread = await newThread();
        const run = await client.runs.create(thread, "nap", { input: LONG });
        await until(running(thread, run));
        await client.runs.cancel(thread, run.run_id, true);
        assert.equal((await client.runs.get(thread, run.run_id)).status, "interrupted");
    });

    test("are cancelled together", beyondPeer("has no such endpoint"), async () => {
        const thread = await newThread();
        const run = await client.runs.create(thread, "nap", { input: LONG });
        await until(running(thread, run));
        await client.runs.cancelMany({ threadId: thread, runIds: [run.run_id] });
        await until(
            async () => (await client.runs.get(thread, run.run_id)).status === "interrupted",
        );
    });

    test("are rolled back", beyondPeer("keeps the run as one that failed"), async () => {
        const thread = await newThread();
        const run = await client.runs.create(thread, "nap", { input: LONG });
        await until(running(thread, run));
        await client.runs.cancel(thread, run.run_id, true, "rollback");
        await refused(client.runs.get(thread, run.run_id), 404);
        assert.deepEqual(await client.threads.getHistory(thread), []);
    });

    test("come to a busy thread", async () => {
        const thread = await newThread();
        const first = await client.runs.create(thread, "nap", { input: LONG });
        await until(running(thread, first));
        await refused(
            client.runs.create(thread, "nap", { input: { ms: 1 }, multitaskStrategy: "reject" }),
            isPeer ? 422 : 409,
        );
        await until(async () => (await client.threads.getState(thread)).next[0] === "sleep");
        const second = await client.runs.create(thread, "nap", {
            input: { ms: 1 },
            multitaskStrategy: "interrupt",
        });
        const values = await client.runs.join(thread, second.run_id);
        assert.deepEqual(values.log, ["before", "before", "slept", "after"]);
        assert.equal((await client.runs.get(thread, first.run_id)).status, "interrupted");
    });

    test("begin later", async () => {
        const thread = await newThread();
        const other = await newThread();
        const never = await client.runs.create(other, "echo", {
            input: human("never"),
            afterSeconds: 3600,
        });
        const run = await client.runs.create(thread, "echo", {
            input: human("later"),
            afterSeconds: 1,
        });
        assert.deepEqual(texts(await client.runs.join(thread, run.run_id)), [
            "later",
            "You said: later",
        ]);
        assert.equal((await client.runs.get(other, never.run_id)).status, "pending");
        await client.runs.cancel(other, never.run_id, true);
    });

    test("that are unknown", async () => {
        const thread = await newThread();
        await refused(client.runs.get(thread, unknown()), 404);
        await refused(client.runs.delete(thread, unknown()), 404);
        await refused(client.runs.cancel(thread, unknown()), 404);
        await refused(client.runs.create(thread, "no-such-graph", { input: {} }), 404);
    });
});
