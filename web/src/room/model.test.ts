import assert from "node:assert/strict";
import { test } from "node:test";
import { ann, bob, cascadeOf, chatMessage, guide, planStep } from "./fixtures";
import {
    applyEvent,
    emptyRoom,
    expireTyping,
    putMessages,
    textOfLive,
    toolsOfLive,
    type RoomState,
} from "./model";
import type { MessageRun } from "./types";

const run: MessageRun = { run_id: "r1", assistant_id: "a1", status: "running", answer: "x1" };
const asked = chatMessage(1, { runs: [run] });

const chunk = (content: string, more: object = {}, place: object = {}) => ({
    event: "messages",
    data: [
        { id: "p1", type: "AIMessageChunk", content, ...more },
        { run_id: "r1", assistant_id: "a1", langgraph_checkpoint_ns: "model:1", ...place },
    ],
});

const after = (state: RoomState, ...events: { event: string; data: unknown }[]) =>
    events.reduce((before, event) => applyEvent(before, event, 1000), state);

test("messages are kept by seq, each once", () => {
    const state = putMessages(emptyRoom, [chatMessage(3), chatMessage(1), chatMessage(2)]);
    const again = putMessages(state, [chatMessage(2)]);
    assert.deepEqual(
        again.messages.map((one) => one.id),
        ["m1", "m2", "m3"],
    );
});

test("an older copy of a message does not replace a newer one", () => {
    const edited = chatMessage(1, { version: 2, content: "new", updated_at: "2026-02-01" });
    const state = putMessages(emptyRoom, [edited, chatMessage(1)]);
    assert.equal(state.messages[0]?.content, "new");
});

test("chunks of a run grow its answer, and its message replaces them", () => {
    const writing = after(
        putMessages(emptyRoom, [asked]),
        chunk("Hel"),
        chunk("lo", { tool_call_chunks: [{ name: "weather" }] }),
    );
    const live = writing.runs.get("r1")!;
    assert.equal(textOfLive(live), "Hello");
    assert.deepEqual(toolsOfLive(live), ["weather"]);
    const answer = chatMessage(2, { id: "x1", sender: guide, run_id: "r1", content: "Hello" });
    const done = after(writing, { event: "room/message", data: { message: answer } });
    assert.equal(done.runs.size, 0);
    assert.equal(done.messages.length, 2);
});

test("chunks of delegates are no part of the answer", () => {
    const state = after(
        putMessages(emptyRoom, [asked]),
        chunk("inner", {}, { langgraph_checkpoint_ns: "tools:1|model:2" }),
    );
    assert.equal(textOfLive(state.runs.get("r1")!), "");
});

test("a run that begins again loses what it streamed before", () => {
    const begun = after(putMessages(emptyRoom, [asked]), chunk("lost"));
    const again = after(begun, {
        event: "metadata",
        data: { run_id: "r1", assistant_id: "a1", attempt: 2 },
    });
    assert.equal(textOfLive(again.runs.get("r1")!), "");
});

test("an event of a run changes its status in the message that made it", () => {
    const state = after(putMessages(emptyRoom, [asked]), {
        event: "room/run",
        data: { run: { ...run, trigger: "m1", status: "error" } },
    });
    assert.equal(state.messages[0]?.runs[0]?.status, "error");
    assert.equal(state.runs.get("r1")?.status, "error");
});

test("typing ends after some seconds, and when the message is there", () => {
    const typing = after(emptyRoom, { event: "room/typing", data: { person: bob } });
    assert.equal(typing.typing.size, 1);
    assert.equal(expireTyping(typing, 1500).typing.size, 1);
    assert.equal(expireTyping(typing, 60_000).typing.size, 0);
    const said = putMessages(typing, [chatMessage(1, { sender: bob })]);
    assert.equal(said.typing.size, 0);
});

test("read marks only move forward", () => {
    const state = after(
        emptyRoom,
        { event: "room/read", data: { reader: bob, seq: 5 } },
        { event: "room/read", data: { reader: bob, seq: 3 } },
    );
    assert.equal(state.reads.get("bob")?.seq, 5);
});

test("a late event of a cascade does not replace a newer one", () => {
    const done = cascadeOf([planStep("r1")], { status: "done", updated_at: "2026-03-01" });
    const state = after(
        emptyRoom,
        { event: "room/cascade", data: { cascade: done } },
        { event: "room/cascade", data: { cascade: cascadeOf([planStep("r1")]) } },
    );
    assert.equal(state.cascades.get("c")?.status, "done");
});

test("presence replaces the list of people", () => {
    const state = after(
        emptyRoom,
        { event: "room/presence", data: { people: [ann, bob] } },
        { event: "room/presence", data: { people: [ann] } },
    );
    assert.deepEqual(state.present, [ann]);
});

test("unknown events change nothing", () => {
    assert.equal(after(emptyRoom, { event: "values", data: {} }), emptyRoom);
});
