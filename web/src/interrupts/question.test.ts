import assert from "node:assert/strict";
import { test } from "node:test";
import { errorOf, fieldsOf, fieldsOfSchema, valuesOf } from "./fields";
import { passedOnBy, canAccept, canRespond, questionOf, type Json } from "./question";

const parse = (value: Json) => questionOf({ id: "q", value }, 0);
const call = (
    action: string,
    args: Json,
    replyTypes = ["accept", "edit", "respond", "ignore"],
) => ({
    action_request: { action, args },
    config: Object.fromEntries(replyTypes.map((type) => [`allow_${type}`, true])),
    description: "",
});

test("a call in the format of Agent Inbox is answered by a list", () => {
    const { items, encode } = parse(call("buy", { item: "x" }, ["accept", "respond"]));
    const [item] = items;
    assert.ok(item?.kind === "call");
    assert.deepEqual(item.replyTypes, ["accept", "respond"]);
    // Graphs written for Agent Inbox read interrupt(…)[0], for a single request too.
    assert.deepEqual(encode([{ type: "accept" }]), [{ type: "accept", args: null }]);
    assert.deepEqual(encode([{ type: "ignore" }]), [{ type: "ignore", args: null }]);
    assert.deepEqual(encode([{ type: "respond", text: "no" }]), [{ type: "response", args: "no" }]);
    assert.deepEqual(encode([{ type: "edit", args: { item: "y" } }]), [
        { type: "edit", args: { action: "buy", args: { item: "y" } } },
    ]);
});

test("the format of Agent Inbox takes precedence", () => {
    const { items } = parse({
        ...call("buy", {}),
        action_requests: [{ name: "buy", args: {} }],
        review_configs: [],
    });
    assert.equal(items.length, 1);
    assert.ok(items[0]?.kind === "call" && items[0].form === "inbox");
});

test("a list of calls is answered by a list", () => {
    const { items, encode } = parse([call("a", {}), call("b", {})]);
    assert.equal(items.length, 2);
    assert.deepEqual(encode([{ type: "accept" }, { type: "ignore" }]), [
        { type: "accept", args: null },
        { type: "ignore", args: null },
    ]);
});

test("LangChain decisions are decoded and encoded", () => {
    const { items, encode } = parse({
        action_requests: [
            { name: "a", args: { x: 1 } },
            { name: "b", args: {} },
        ],
        review_configs: [{ action_name: "a", allowed_decisions: ["approve"] }],
    });
    assert.ok(items[0]?.kind === "call" && items[1]?.kind === "call");
    assert.deepEqual(items[0].replyTypes, ["accept"]);
    assert.deepEqual(items[1].replyTypes, ["accept", "edit", "respond", "ignore"]);
    assert.deepEqual(encode([{ type: "accept" }, { type: "respond", text: "why" }]), {
        decisions: [{ type: "approve" }, { type: "reject", message: "why" }],
    });
});

test("a delegate's requests name the delegate, and the replies reach it", () => {
    const delegate = { assistant_id: "d", name: "Clerk", interrupt_ids: ["i", "j"] };
    const several = { questions: [call("a", {}), "and you?"], delegate };
    const { items, encode } = parse(several);
    assert.deepEqual(
        items.map((item) => item.delegate?.name),
        ["Clerk", "Clerk"],
    );
    assert.deepEqual(encode([{ type: "accept" }, { type: "respond", text: "fine" }]), [
        [{ type: "accept", args: null }],
        "fine",
    ]);
    assert.deepEqual(passedOnBy({ id: "q", value: several }), ["i", "j"]);
    assert.equal(parse({ questions: [], next: ["n"], delegate }).items[0]?.kind, "pause");
});

test("reviews, forms, and anything else", () => {
    const review = parse({ type: "review_results", results: [1], message: "look" });
    assert.deepEqual(review.encode([{ type: "accept" }]), { approved: true });
    assert.deepEqual(review.encode([{ type: "respond", text: "more" }]), {
        approved: false,
        feedback: "more",
    });
    const request = {
        method: "elicitation/create",
        params: { message: "m", requestedSchema: { properties: { a: { type: "string" } } } },
    };
    const form = parse({
        type: "mcp_input",
        server: "s",
        requests: { "1": request, "2": request },
    });
    assert.deepEqual(form.encode([{ type: "edit", args: { a: "b" } }, { type: "ignore" }]), {
        "1": { action: "accept", content: { a: "b" } },
        "2": { action: "decline" },
    });
    const [other] = parse({ question: "Go on?", message: "later", error: "no" }).items;
    assert.ok(other?.kind === "other");
    assert.deepEqual([other.text, other.rest, other.error], ["Go on?", { message: "later" }, "no"]);
    for (const value of [null, 3, true, [], [1], {}, "text"]) {
        const { items, encode } = parse(value);
        assert.ok(canRespond(items[0]!) && !canAccept(items[0]!));
        assert.equal(encode([{ type: "respond", text: "a" }]), "a");
        assert.deepEqual(encode([{ type: "value", value: { b: 1 } }]), { b: 1 });
    }
});

test("values keep their types in a form", () => {
    const args = { text: "a", number: 1.5, flag: false, list: [1, { a: null }], none: null };
    assert.deepEqual(valuesOf(fieldsOf(args)), args);
});

test("typed values are validated", () => {
    const [number, list] = fieldsOf({ number: 1, list: [] });
    assert.equal(errorOf({ ...number!, text: "2e3" }), null);
    assert.equal(errorOf({ ...number!, text: "" }), "Enter a number.");
    assert.equal(errorOf({ ...number!, text: "0x10" }), "Enter a number.");
    assert.match(errorOf({ ...list!, text: "[1," }) ?? "", /^Invalid JSON/);
    const fields = fieldsOfSchema(
        { age: { type: "integer" }, role: { enum: ["a", "b"] }, name: { type: "string" } },
        ["age"],
    );
    assert.equal(errorOf({ ...fields[0]!, text: "1.5" }), "Enter a whole number.");
    assert.equal(errorOf(fields[1]!), null);
    assert.deepEqual(valuesOf([{ ...fields[0]!, text: "7" }, fields[1]!, fields[2]!]), { age: 7 });
});
