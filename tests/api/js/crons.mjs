import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { beyondPeer, client, newThread, refused, unknown } from "./lib.mjs";

describe("crons", beyondPeer("has no crons"), () => {
    test("are made, changed, found, deleted", async () => {
        const metadata = { owner: crypto.randomUUID() };
        const thread = await newThread();
        const schedule = "0 0 1 1 *";
        const first = await client.crons.create("echo", {
            schedule,
            input: { messages: ["hi"] },
            metadata,
        });
        const second = await client.crons.createForThread(thread, "loop", {
            schedule,
            input: { count: 0 },
            metadata,
        });
        assert.equal(second.thread_id, thread);
        assert.equal(await client.crons.count({ metadata }), 2);
        const found = await client.crons.search({
            metadata,
            sortBy: "created_at",
            sortOrder: "asc",
        });
        assert.deepEqual(
            found.map((cron) => cron.cron_id),
            [first.cron_id, second.cron_id],
        );
        const changed = await client.crons.update(first.cron_id, {
            schedule: "5 4 * * *",
            enabled: false,
        });
        assert.deepEqual([changed.schedule, changed.enabled], ["5 4 * * *", false]);
        for (const cron of found) await client.crons.delete(cron.cron_id);
        assert.deepEqual(await client.crons.search({ metadata }), []);
    });

    test("that are wrong or unknown", async () => {
        await refused(client.crons.create("echo", { schedule: "never", input: {} }), 422);
        await refused(
            client.crons.createForThread(unknown(), "echo", { schedule: "0 0 1 1 *" }),
            404,
        );
        await refused(client.crons.delete(unknown()), 404);
        await refused(client.crons.update(unknown(), { enabled: true }), 404);
    });
});
