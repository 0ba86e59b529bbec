import assert from "node:assert/strict";
import { test } from "node:test";
import { ann, bob, cascadeOf, chatMessage, guide, planStep } from "./fixtures";
import { applyEvent, emptyRoom, putMessages, type RoomState } from "./model";
import { firstUnread, namesOf, progressOf, rowsOf, shownCascade, writersOf } from "./rows";

const withCascade = (state: RoomState, cascade: ReturnType<typeof cascadeOf>) =>
    applyEvent(state, { event: "room/cascade", data: { cascade } }, 0);

test("follow-ups of a person show no sender; answers and replies do", () => {
    const state = putMessages(emptyRoom, [
        chatMessage(1),
        chatMessage(2),
        chatMessage(3, { reply_to: "m1" }),
        chatMessage(4, { sender: guide }),
        chatMessage(5, { sender: guide }),
    ]);
    assert.deepEqual(
        rowsOf(state, bob, null).map((row) => row.showsSender),
        [true, false, true, true, true],
    );
});

test("the first unread message is counted over the messages of others", () => {
    const messages = [
        chatMessage(1, { sender: bob }),
        chatMessage(2),
        chatMessage(3, { sender: bob }),
        chatMessage(4),
    ];
    assert.equal(firstUnread(messages, ann, 1), "m3");
    assert.equal(firstUnread(messages, ann, 2), "m1");
    assert.equal(firstUnread(messages, ann, 0), null);
});

test("a running run without an answer is a writer", () => {
    const run = { run_id: "r1", assistant_id: "a1", status: "running", answer: "x" };
    const state = putMessages(emptyRoom, [chatMessage(1, { runs: [run] })]);
    assert.deepEqual(
        writersOf(state).map((live) => live.runId),
        ["r1"],
    );
    const cascade = cascadeOf([planStep("r0", { new_run_id: "r1" })]);
    assert.deepEqual(writersOf(withCascade(state, cascade)), []);
});

test("an answer that is made again shows its new run", () => {
    const state = putMessages(emptyRoom, [chatMessage(1, { id: "x1", sender: guide })]);
    const plan = [planStep("r1", { answer: "x1", new_run_id: "r2", status: "running" })];
    const [row] = rowsOf(withCascade(state, cascadeOf(plan)), ann, null);
    assert.equal(row?.rewrite?.status, "running");
    const done = withCascade(state, cascadeOf(plan, { status: "done" }));
    assert.equal(rowsOf(done, ann, null)[0]?.rewrite, null);
});

test("an open cascade is shown before a later one that has ended", () => {
    const open = cascadeOf([], { cascade_id: "open" });
    const done = cascadeOf([], { cascade_id: "done", status: "done", created_at: "2027-01-01" });
    const state = withCascade(withCascade(emptyRoom, open), done);
    assert.equal(shownCascade(state)?.cascade_id, "open");
});

test("an ended cascade is shown until the conversation goes on", () => {
    const state = withCascade(emptyRoom, cascadeOf([], { status: "done" }));
    assert.equal(shownCascade(putMessages(state, [chatMessage(1)]))?.status, "done");
    const later = chatMessage(2, { created_at: "2027-01-01T00:00:00.000+00:00" });
    assert.equal(shownCascade(putMessages(state, [later])), null);
});

test("blocked steps do not count as progress", () => {
    const plan = [
        planStep("1", { status: "done" }),
        planStep("2", { blocked: "The agent was deleted." }),
        planStep("3"),
    ];
    assert.deepEqual(progressOf(cascadeOf(plan)), { done: 1, all: 2 });
});

test("names are joined as in a sentence", () => {
    assert.equal(namesOf([ann]), "Ann");
    assert.equal(namesOf([ann, bob]), "Ann and Bob");
    assert.equal(namesOf([ann, bob, guide]), "Ann, Bob and Guide");
    assert.equal(namesOf([ann, bob, guide, { ...bob, id: "d" }]), "Ann, Bob and 2 others");
});

test("a reply quotes its message unless that is directly before it", () => {
    const answer = { sender: guide, reply_to: "m1" };
    const state = putMessages(emptyRoom, [
        chatMessage(1),
        chatMessage(2, answer),
        chatMessage(3, { ...answer, sender: { ...guide, id: "a2" } }),
        chatMessage(4),
        chatMessage(5, answer),
    ]);
    assert.deepEqual(
        rowsOf(state, bob, null).map((row) => row.showsQuote),
        [false, false, false, false, true],
    );
});
