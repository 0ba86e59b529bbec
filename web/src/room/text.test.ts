import assert from "node:assert/strict";
import { test } from "node:test";
import { ann, bob, chatMessage, guide } from "./fixtures";
import { countRatings, excerptOf, ratingOf, reasonOfError, transcriptOf } from "./text";

test("an excerpt is one line", () => {
    assert.equal(excerptOf(chatMessage(1, { content: "one\n\ntwo" })), "one two");
    assert.equal(excerptOf(chatMessage(1, { content: "# A\n- **b**\n- `c`" })), "A b c");
    assert.equal(excerptOf(chatMessage(1, { content: "x".repeat(300) })).length, 121);
    assert.equal(excerptOf(chatMessage(1, { state: "deleted", content: null })), "deleted message");
});

test("an error of any shape has its reason shown", () => {
    assert.equal(reasonOfError("broken"), "broken");
    assert.equal(reasonOfError({ error: "Type", message: "broken" }), "broken");
    assert.equal(reasonOfError(null), "");
});

test("each person has a rating of their own", () => {
    const message = chatMessage(1, {
        feedback: [
            { rating: "up", person: ann },
            { rating: "down", person: bob },
        ],
    });
    assert.equal(ratingOf(message, bob), "down");
    assert.equal(ratingOf(message, guide), null);
    assert.deepEqual(countRatings(message), { up: 1, down: 1 });
});

test("a transcript has the messages that count, with their senders and times", () => {
    const text = transcriptOf("Room", [
        chatMessage(1),
        chatMessage(2, { state: "stale", sender: guide }),
        chatMessage(3, { sender: guide, content: "**Yes**" }),
    ]);
    assert.equal(
        text,
        "# Room\n\n## Ann · 2026-01-01 00:00\n\ntext 1\n\n## Guide · 2026-01-01 00:00\n\n**Yes**\n",
    );
});
