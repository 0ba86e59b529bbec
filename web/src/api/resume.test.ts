import assert from "node:assert/strict";
import { test } from "node:test";
import { createEventParser } from "./eventParser";

// Browser globals that must exist before the modules load.
Object.assign(globalThis, {
    document: { baseURI: "http://localhost/" },
    window: Object.assign(new EventTarget(), globalThis),
});
const { resuming } = await import("./resume");
const { runEndOf } = await import("./runEnds");
const { isRefused } = await import("./session");

const RUN = "/threads/T/runs/R";
const piece = (id: number, text: string) => `event: messages\ndata: ["${text}"]\nid: ${id}\n\n`;
const metadata = (id: number, attempt: number) =>
    `event: metadata\ndata: {"run_id":"R","attempt":${attempt}}\nid: ${id}\n\n`;
const values = (id: number, text: string) =>
    `event: values\ndata: {"messages":["${text}"]}\nid: ${id}\n\n`;
const end = (id: number) => `event: end\ndata: {"run_id":"R","status":"success"}\nid: ${id}\n\n`;

interface Recorded {
    path: string;
    lastEventId: string | null;
}

/** A stream of these texts that then ends or breaks. */
function stream(texts: string[], breaks: boolean): Response {
    const bytes = new TextEncoder();
    const body = new ReadableStream<Uint8Array>({
        pull(controller) {
            const text = texts.shift();
            if (text !== undefined) controller.enqueue(bytes.encode(text));
            else if (breaks) controller.error(new TypeError("network error"));
            else controller.close();
        },
    });
    return new Response(body, {
        headers: {
            "content-type": "text/event-stream",
            "content-location": RUN,
            location: `${RUN}/stream`,
        },
    });
}

/** Answers one request after another; a string is the status of the run. */
function server(answers: (Response | string | Error)[]) {
    const requests: Recorded[] = [];
    const answer: typeof fetch = async (input, init) => {
        const path = new URL(String(input)).pathname;
        if (path === "/ok") return new Response("{}");
        requests.push({ path, lastEventId: new Headers(init?.headers).get("last-event-id") });
        const next = answers.shift();
        if (next instanceof Error) throw next;
        if (next === undefined) throw new Error(`unexpected request: ${path}`);
        return typeof next === "string" ? Response.json({ status: next }) : next;
    };
    globalThis.fetch = answer;
    return { requests, fetch: resuming(answer) };
}

const read = async (fetch: typeof globalThis.fetch) => {
    const response = await fetch("http://localhost/threads/T/runs/stream", { method: "POST" });
    assert.equal(response.headers.get("location"), null);
    return response.text();
};

test("a complete stream is passed on unchanged, without its comments", async () => {
    const text = metadata(1, 1) + piece(2, "a") + end(3);
    const { fetch, requests } = server([
        stream([metadata(1, 1), ": heartbeat\n", ": heartbeat\n" + piece(2, "a"), end(3)], false),
    ]);
    assert.equal(await read(fetch), text);
    assert.equal(requests.length, 1);
    assert.equal(runEndOf("R")?.status, "success");
});

test("events split anywhere arrive complete", async () => {
    const text = metadata(1, 1) + piece(2, "héé ☃") + end(3);
    const bytes = new TextEncoder().encode(text);
    for (const size of [1, 2, 3, 7, 50]) {
        const body = new ReadableStream<Uint8Array>({
            start(controller) {
                for (let at = 0; at < bytes.length; at += size)
                    controller.enqueue(bytes.slice(at, at + size));
                controller.close();
            },
        });
        const whole = new Response(body, {
            headers: { "content-type": "text/event-stream", "content-location": RUN },
        });
        assert.equal(await read(server([whole]).fetch), text);
    }
});

test("a broken stream resumes after its last complete event", async () => {
    const { fetch, requests } = server([
        stream([metadata(1, 1), piece(2, "a"), piece(3, "b").slice(0, 20)], true),
        stream([piece(3, "b"), end(4)], false),
    ]);
    assert.equal(await read(fetch), metadata(1, 1) + piece(2, "a") + piece(3, "b") + end(4));
    assert.deepEqual(requests[1], { path: `${RUN}/stream`, lastEventId: "2" });
});

test("a stream that ends too early resumes as well", async () => {
    const { fetch, requests } = server([
        stream([metadata(1, 1), piece(2, "a")], false),
        "running",
        stream([end(3)], false),
    ]);
    assert.equal(await read(fetch), metadata(1, 1) + piece(2, "a") + end(3));
    assert.deepEqual(
        requests.map(({ path }) => path),
        ["/threads/T/runs/stream", RUN, `${RUN}/stream`],
    );
});

test("events between the last one and the end of the run are fetched", async () => {
    const { fetch } = server([
        stream([metadata(1, 1)], false),
        "success",
        stream([piece(2, "a"), end(3)], false),
    ]);
    assert.equal(await read(fetch), metadata(1, 1) + piece(2, "a") + end(3));
});

test("the stream waits for an unreachable server", async () => {
    const { fetch } = server([
        stream([metadata(1, 1), piece(2, "a")], true),
        new TypeError("refused"),
        new Response("starting", { status: 503 }),
        stream([end(3)], false),
    ]);
    assert.equal(await read(fetch), metadata(1, 1) + piece(2, "a") + end(3));
});

test("a new attempt of a run repeats the values before its first attempt", async () => {
    const { fetch } = server([
        stream([metadata(1, 1), values(2, "hello"), piece(3, "lost")], true),
        stream([metadata(11, 2), piece(12, "found"), end(13)], false),
    ]);
    const again = `event: values\ndata: {"messages":["hello"]}\n\n`;
    assert.equal(
        await read(fetch),
        metadata(1, 1) +
            values(2, "hello") +
            piece(3, "lost") +
            again +
            metadata(11, 2) +
            piece(12, "found") +
            end(13),
    );
});

test("the stream resumes after a new sign-in", async () => {
    const { fetch, requests } = server([
        stream([metadata(1, 1), piece(2, "a")], true),
        new Response("{}", { status: 401 }),
        stream([end(3)], false),
    ]);
    isRefused.set(true); // as the fetch with the token does
    const text = read(fetch);
    while (requests.length < 2) await new Promise((resolve) => setTimeout(resolve, 10));
    isRefused.set(false);
    assert.equal(await text, metadata(1, 1) + piece(2, "a") + end(3));
    assert.deepEqual(requests[2], { path: `${RUN}/stream`, lastEventId: "2" });
});

test("a deleted run is an error", async () => {
    const { fetch } = server([stream([metadata(1, 1)], true), new Response("{}", { status: 404 })]);
    await assert.rejects(read(fetch), /Could not resume the stream: 404/);
});

test("responses other than run streams pass unchanged", async () => {
    const plain = Response.json({ a: 1 });
    assert.equal(await server([plain]).fetch("http://localhost/threads/T/runs"), plain);
    const thread = new Response("", { headers: { "content-type": "text/event-stream" } });
    assert.equal(await server([thread]).fetch("http://localhost/threads/T/stream"), thread);
});

test("events may end with any kind of line end", () => {
    const parser = createEventParser();
    const cuts = [
        "event: a\r\ndata: 1\r\n\r",
        "\nevent: b\rdata: 2\r\rdata: 3\ndata: 4\nid:7\n\n:c\n\n:c\r",
        "\n:c\revent: d\ndata: 5\n\n",
    ].flatMap((text) => parser.push(text));
    assert.deepEqual(
        cuts.map(({ event, data, id }) => [event, data, id]),
        [
            ["a", "1", null],
            ["b", "2", null],
            ["", "3\n4", "7"],
            ["d", "5", null],
        ],
    );
});
