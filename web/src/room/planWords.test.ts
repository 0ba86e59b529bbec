import assert from "node:assert/strict";
import { test } from "node:test";
import { planStep } from "./fixtures";
import { stateOf, summaryOf, whyOf } from "./planWords";

test("a plan is summed up before it acts", () => {
    const plan = [
        planStep("1"),
        planStep("2", { approval: "limit" }),
        planStep("3", { blocked: "The agent was deleted." }),
    ];
    assert.equal(
        summaryOf({ plan, free: 1, possible: 2, limit: 1 }),
        "2 answers are made again. 1 of them waits for an approval. 1 answer cannot be repeated and becomes out of date.",
    );
    assert.equal(
        summaryOf({ plan: [], free: 0, possible: 0, limit: 5 }),
        "No answer depends on this message.",
    );
});

test("a step shows what it waits for, then how far it is", () => {
    assert.equal(stateOf(planStep("1"), false).text, "Is answered again");
    assert.equal(stateOf(planStep("1", { approval: "effects" }), false).text, "Needs approval");
    assert.equal(stateOf(planStep("1", { status: "done", approval: "limit" }), true).text, "Done");
    assert.equal(stateOf(planStep("1", { blocked: "Pruned." }), true).text, "Cannot be repeated");
});

test("tools that would be called again are named", () => {
    assert.match(whyOf(planStep("1", { tools: ["send_mail"] })), /It used send_mail/);
    assert.equal(whyOf(planStep("1", { blocked: "Pruned." })), "Pruned.");
});
