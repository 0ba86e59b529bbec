import assert from "node:assert/strict";
import { test } from "node:test";
import type { Message, ThreadState } from "@langchain/langgraph-sdk";
import type { State } from "@/api/heddle";

// Browser globals that must exist before the modules load.
const storage = { getItem: () => null, setItem: () => undefined, removeItem: () => undefined };
Object.assign(globalThis, {
    document: { baseURI: "http://localhost/" },
    window: Object.assign(new EventTarget(), { sessionStorage: storage, localStorage: storage }),
});
const { isBehind, stoppedOf, textOfError, unstoredOf } = await import("./runOutcome");

const messages = (...ids: string[]) =>
    ids.map((id) => ({ id, type: id.startsWith("h") ? "human" : "ai", content: id }) as Message);

test("error texts are readable", () => {
    assert.equal(textOfError("BadRequestError('no such \\'model\\'')"), "no such 'model'");
    assert.equal(textOfError('RuntimeError("it\'s gone",)'), "it's gone");
    assert.equal(textOfError('{"error":"ValueError","message":"too long"}'), "too long");
    assert.equal(textOfError("plain words (with more)"), "plain words (with more)");
    assert.equal(textOfError({ a: 1 }), '{"a":1}');
});

test("an answer that was streamed and not stored is reported", () => {
    assert.equal(unstoredOf(messages("h1", "a1"), messages("h1"))?.id, "a1");
    assert.equal(unstoredOf(messages("h1", "a1"), messages("h1", "a1")), null);
    assert.equal(unstoredOf(messages("h1"), messages()), null);
    assert.equal(unstoredOf([], []), null);
});

test("a stream that is read again is behind until it catches up", () => {
    assert.ok(isBehind(messages("h1"), messages("h1", "a1", "a2")));
    assert.ok(!isBehind(messages("h1", "a1"), messages("h1", "a1")));
    assert.ok(!isBehind(messages("h2"), messages("h1", "a1"))); // another branch
});

test("a chat is stopped when nodes are pending, no interrupt is open, and its run has a receipt", () => {
    const state = (more: object) =>
        ({ next: ["model"], tasks: [], ...more }) as unknown as ThreadState<State>;
    const receipt = { stopped_at_step: 1, tokens_streamed: 3, tools_in_flight: [] };
    const ended = { runId: "R", status: "interrupted", receipt };
    assert.deepEqual(stoppedOf(state({}), ended), { receipt, partial: null });
    assert.equal(stoppedOf(state({ next: [] }), ended), null);
    assert.equal(stoppedOf(state({ tasks: [{ interrupts: [{ id: "q" }] }] }), ended), null);
    assert.equal(stoppedOf(state({ tasks: [{ error: "gone" }] }), ended), null);
    assert.equal(stoppedOf(state({}), { ...ended, receipt: null }), null);
    assert.equal(stoppedOf(null, ended), null);
});
