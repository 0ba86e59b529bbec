import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { EventSource } from "eventsource";
import { apiUrl, beyondPeer, client, collect, human, newThread, of, texts, until } from "./lib.mjs";

const MODES = [
    "values",
    "updates",
    "messages-tuple",
    "custom",
    "tasks",
    "checkpoints",
    "debug",
    "events",
];

describe("streams", () => {
    test("of values", async () => {
        const thread = await newThread();
        let made;
        const parts = await collect(
            client.runs.stream(thread, "echo", {
                input: human("hi"),
                onRunCreated: (params) => (made = params),
            }),
        );
        assert.equal(parts[0].event, "metadata");
        assert.deepEqual(made, { run_id: parts[0].data.run_id, thread_id: thread });
        assert.deepEqual(of(parts, "values").map(texts), [["hi"], ["hi", "You said: hi"]]);
    });

    test("of all modes at once", async () => {
        const thread = await newThread();
        const parts = await collect(
            client.runs.stream(thread, "loop", { input: { count: 0 }, streamMode: MODES }),
        );
        const seen = new Set(parts.map((part) => part.event));
        for (const mode of MODES) if (mode !== "messages-tuple") assert.ok(seen.has(mode), mode);
        assert.equal(of(parts, "updates").length, 5);
        assert.equal(of(parts, "values").at(-1).count, 5);
        assert.deepEqual(of(parts, "custom")[0], { at: 0 });
    });

    test("of messages", async () => {
        const parts = await collect(
            client.runs.stream(null, "echo", {
                input: human("hi there"),
                streamMode: ["messages-tuple", "messages"],
            }),
        );
        const said = of(parts, "messages").map(([message]) => message);
        assert.equal(said.map((message) => message.content).join(""), "You said: hi there");
        assert.equal(new Set(said.map((message) => message.id)).size, 1);
        const partial = of(parts, "messages/partial").map(([message]) => message.content);
        assert.deepEqual(partial.slice(0, 2), ["You ", "You said: "]);
    });

    test("of subgraphs", async () => {
        const thread = await newThread();
        const parts = await collect(
            client.runs.stream(thread, "nested", {
                input: human("hi"),
                streamMode: "updates",
                streamSubgraphs: true,
            }),
        );
        const inner = parts.filter((part) => part.event.startsWith("updates|child:"));
        assert.deepEqual(
            inner.map((part) => Object.keys(part.data)[0]),
            ["choose", "inner"],
        );
    });

    test("of interrupts and failures", async () => {
        const asked = await collect(
            client.runs.stream(await newThread(), "approval", {
                input: human("hi"),
                streamMode: ["updates", "values"],
            }),
        );
        const [interrupt] = of(asked, "updates").at(-1).__interrupt__;
        assert.deepEqual(of(asked, "values").at(-1).__interrupt__, [interrupt]);
        const failed = await collect(
            client.runs.stream(await newThread(), "failing", { input: { log: [] } }),
        );
        assert.deepEqual(of(failed, "error")[0], { error: "ValueError", message: "boom" });
    });

    test("are joined", async () => {
        const thread = await newThread();
        const run = await client.runs.create(thread, "slow", {
            input: human("hi"),
            streamMode: ["values", "messages-tuple"],
            streamResumable: true,
        });
        const parts = await collect(
            client.runs.joinStream(thread, run.run_id, { lastEventId: "-1" }),
        );
        const said = of(parts, "messages")
            .map(([message]) => message.content)
            .join("");
        assert.equal(said, "one two three four five six seven eight nine ten");
        const half = parts[Math.floor(parts.length / 2)];
        const rest = await collect(
            client.runs.joinStream(thread, run.run_id, { lastEventId: half.id }),
        );
        assert.deepEqual(rest, parts.slice(parts.indexOf(half) + 1));
    });

    test("end their run when the reader leaves", async () => {
        const thread = await newThread();
        const controller = new AbortController();
        const reading = collect(
            client.runs.stream(thread, "nap", {
                input: { ms: 600_000 },
                onDisconnect: "cancel",
                signal: controller.signal,
            }),
        ).catch(() => {});
        await until(async () => (await client.threads.getState(thread)).next[0] === "sleep");
        controller.abort();
        await reading;
        await until(async () => (await client.runs.list(thread))[0].status === "interrupted");
    });

    test("have no events for heartbeats", beyondPeer("has another interval"), async () => {
        const thread = await newThread();
        const seen = [];
        const reading = (async () => {
            for await (const part of client.runs.stream(thread, "nap", { input: { ms: 600_000 } }))
                seen.push(part);
        })();
        const [run] = await until(async () => {
            const runs = await client.runs.list(thread);
            return runs.length && seen.length > 1 && runs;
        });
        const joined = [];
        const joining = (async () => {
            for await (const part of client.runs.joinStream(thread, run.run_id, {
                lastEventId: "-1",
            }))
                joined.push(part);
        })();
        const url = `${apiUrl}/threads/${thread}/runs/${run.run_id}/stream`;
        const fromStart = (_, init) =>
            fetch(url, { ...init, headers: { ...init.headers, "last-event-id": "-1" } });
        const source = new EventSource(url, { fetch: fromStart });
        const messages = [];
        for (const name of ["metadata", "values", "message", ""])
            source.addEventListener(name, (event) => messages.push(event));
        await until(() => joined.length && messages.length);
        const response = await fromStart(url, {});
        let raw = "";
        for await (const piece of response.body.pipeThrough(new TextDecoderStream())) {
            raw += piece;
            if (raw.split(": heartbeat\n").length > 3) break;
        }
        source.close();
        await client.runs.cancel(thread, run.run_id, true);
        await Promise.all([reading, joining]);
        for (const part of [...seen, ...joined])
            assert.ok(part.event && part.data, JSON.stringify(part));
        assert.deepEqual(
            messages
                .map((message) => [message.type, message.data === ""])
                .filter(([, empty]) => empty),
            [],
        );
        assert.deepEqual(
            [...new Set(messages.map((message) => message.type))],
            ["metadata", "values"],
        );
    });

    test("of a thread span its runs", beyondPeer("has no such endpoint"), async () => {
        const thread = await newThread();
        const controller = new AbortController();
        const seen = [];
        const reading = (async () => {
            for await (const part of client.threads.joinStream(thread, {
                lastEventId: "-",
                signal: controller.signal,
            })) {
                seen.push(part);
                if (seen.filter((each) => each.event === "end").length === 2) break;
            }
        })();
        for (const text of ["one", "two"])
            await collect(
                client.runs.stream(thread, "echo", { input: human(text), streamResumable: true }),
            );
        await reading;
        controller.abort();
        assert.deepEqual(
            of(seen, "values").map((values) => texts(values).at(-1)),
            ["one", "You said: one", "two", "You said: two"],
        );
        const numbers = seen.map((part) => Number(part.id));
        assert.deepEqual(
            numbers,
            numbers.map((_, index) => numbers[0] + index),
        );
    });
});
