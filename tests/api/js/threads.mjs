import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { beyondPeer, client, human, newThread, refused, texts, unknown } from "./lib.mjs";

describe("threads", () => {
    test("are made, changed, copied, deleted", async () => {
        const made = await client.threads.create({ metadata: { a: 1 }, graphId: "echo" });
        assert.equal(made.status, "idle");
        assert.deepEqual(made.metadata, { a: 1, graph_id: "echo" });
        await client.threads.update(made.thread_id, { metadata: { b: 2 } });
        assert.deepEqual((await client.threads.get(made.thread_id)).metadata, {
            a: 1,
            b: 2,
            graph_id: "echo",
        });
        await client.runs.wait(made.thread_id, "echo", { input: human("hi") });
        const copied = await client.threads.copy(made.thread_id);
        assert.notEqual(copied.thread_id, made.thread_id);
        assert.deepEqual(
            (await client.threads.getState(copied.thread_id)).values,
            (await client.threads.getState(made.thread_id)).values,
        );
        await client.threads.delete(made.thread_id);
        await refused(client.threads.get(made.thread_id), 404);
    });

    test("with an id that is taken", async () => {
        const threadId = await newThread();
        await refused(client.threads.create({ threadId }), 409);
        assert.equal(
            (await client.threads.create({ threadId, ifExists: "do_nothing" })).thread_id,
            threadId,
        );
    });

    test("with supersteps", async () => {
        const { thread_id } = await client.threads.create({
            graphId: "echo",
            supersteps: [
                { updates: [{ values: human("one", "m1"), asNode: "__start__" }] },
                {
                    updates: [
                        {
                            values: { messages: [{ type: "ai", content: "two", id: "m2" }] },
                            asNode: "reply",
                        },
                    ],
                },
            ],
        });
        assert.deepEqual(texts((await client.threads.getState(thread_id)).values), ["one", "two"]);
    });

    test("are found and counted", async () => {
        const metadata = { owner: crypto.randomUUID() };
        const ids = [];
        for (let n = 0; n < 3; n++) ids.push((await client.threads.create({ metadata })).thread_id);
        await client.runs.wait(ids[0], "approval", { input: human("hi") });
        assert.equal(await client.threads.count({ metadata }), 3);
        assert.deepEqual(
            (await client.threads.search({ metadata, status: "interrupted" })).map(
                (t) => t.thread_id,
            ),
            [ids[0]],
        );
        assert.deepEqual(
            (await client.threads.search({ metadata, limit: 1, offset: 1 })).map(
                (t) => t.thread_id,
            ),
            [ids[1]],
        );
        const oldest = await client.threads.search({
            metadata,
            sortBy: "created_at",
            sortOrder: "asc",
            select: ["thread_id"],
        });
        assert.deepEqual(
            oldest,
            ids.map((thread_id) => ({ thread_id })),
        );
        assert.deepEqual(
            (await client.threads.search({ ids: [ids[2]] })).map((t) => t.thread_id),
            [ids[2]],
        );
    });

    test("return extracted values", beyondPeer("does not extract"), async () => {
        const metadata = { owner: crypto.randomUUID() };
        const { thread_id } = await client.threads.create({ metadata });
        await client.runs.wait(thread_id, "echo", { input: human("hi") });
        const extract = { last: "values.messages[-1].content" };
        const [found] = await client.threads.search({ metadata, extract, select: ["thread_id"] });
        assert.deepEqual(found, { thread_id, extracted: { last: "You said: hi" } });
    });

    test("are pruned", beyondPeer("has no such endpoint"), async () => {
        const [first, second] = [await newThread(), await newThread()];
        assert.deepEqual(await client.threads.prune([first]), { pruned_count: 1 });
        await refused(client.threads.get(first), 404);
        await client.runs.wait(second, "loop", { input: { count: 0 } });
        await client.threads.prune([second], { strategy: "keep_latest" });
        assert.equal((await client.threads.getHistory(second)).length, 1);
    });

    test("have a time to live", beyondPeer("knows no ttl"), async () => {
        const { thread_id } = await client.threads.create({ ttl: 60 });
        assert.equal((await client.threads.get(thread_id, { include: ["ttl"] })).ttl.ttl, 60);
        await client.threads.update(thread_id, { ttl: 90, returnMinimal: true });
        assert.equal((await client.threads.get(thread_id, { include: ["ttl"] })).ttl.ttl, 90);
    });

    test("have a state and a history", async () => {
        const thread = await newThread();
        assert.equal((await client.threads.getState(thread)).checkpoint, null);
        assert.deepEqual(await client.threads.getHistory(thread), []);
        await client.runs.wait(thread, "loop", { input: { count: 0 } });
        const history = await client.threads.getHistory(thread);
        assert.deepEqual(
            history.map((state) => state.metadata.step),
            [5, 4, 3, 2, 1, 0, -1],
        );
        assert.equal(history.at(-1).parent_checkpoint ?? null, null);
        const old = await client.threads.getState(thread, history[3].checkpoint.checkpoint_id);
        assert.deepEqual(old.values, history[3].values);
        const paged = await client.threads.getHistory(thread, {
            limit: 2,
            metadata: { source: "loop" },
        });
        assert.deepEqual(
            paged.map((state) => state.metadata.step),
            [5, 4],
        );
    });

    test(
        "take checkpoint objects",
        beyondPeer("takes neither configs as `before` nor booleans"),
        async () => {
            const thread = await newThread();
            await client.runs.wait(thread, "loop", { input: { count: 0 } });
            const history = await client.threads.getHistory(thread);
            const found = await client.threads.getState(thread, history[3].checkpoint, {
                subgraphs: true,
            });
            assert.deepEqual(found.values, history[3].values);
            const before = { configurable: { checkpoint_id: history[4].checkpoint.checkpoint_id } };
            assert.deepEqual(
                (await client.threads.getHistory(thread, { before })).map((s) => s.metadata.step),
                [0, -1],
            );
        },
    );

    test("are updated", async () => {
        const thread = await newThread();
        await client.runs.wait(thread, "approval", { input: human("hi") });
        const { checkpoint } = await client.threads.updateState(thread, {
            values: { verdict: "by hand" },
            asNode: "ask",
        });
        const state = await client.threads.getState(thread);
        assert.equal(state.checkpoint.checkpoint_id, checkpoint.checkpoint_id);
        assert.deepEqual(state.next, ["reply"]);
        const values = await client.runs.wait(thread, "approval", { input: null });
        assert.deepEqual(texts(values), ["hi", "Approved: by hand"]);
    });

    test("patch metadata by patchState", beyondPeer("has no such endpoint"), async () => {
        const thread = await newThread();
        await client.threads.patchState(thread, { colour: "red" });
        await client.threads.patchState({ configurable: { thread_id: thread } }, { shade: "dark" });
        const { metadata } = await client.threads.get(thread);
        assert.deepEqual([metadata.colour, metadata.shade], ["red", "dark"]);
    });

    test("that are unknown", async () => {
        for (const call of ["get", "getState", "getHistory", "delete"])
            await refused(client.threads[call](unknown()), 404);
        await refused(client.threads.copy(unknown()), 409);
        await refused(client.threads.updateState(unknown(), { values: {} }), 404);
    });
});
