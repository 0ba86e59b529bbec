import assert from "node:assert/strict";
import { test } from "node:test";
import { diff, labelOf } from "./diff";

const message = (id: string, type: string, content: string) => ({ id, type, content });
const paths = (before: unknown, after: unknown) =>
    diff(before, after).changes.map(({ kind, path }) => `${kind} ${path.join(".")}`);

test("equal states do not differ", () => {
    const state = { a: 1, b: [1, { c: null }], d: { e: "x" } };
    assert.deepEqual(diff(state, structuredClone(state)), { changes: [], isCut: false });
    assert.deepEqual(paths(null, null), []);
    assert.deepEqual(paths({}, {}), []);
});

test("members are added, changed and removed", () => {
    assert.deepEqual(paths({ a: 1, b: 2 }, { b: 3, c: 4 }), ["removed a", "changed b", "added c"]);
    assert.deepEqual(paths({ a: { b: { c: 1 } } }, { a: { b: { c: 2 } } }), ["changed a.b.c"]);
    assert.deepEqual(paths({ a: [] }, { a: {} }), ["changed a"]);
    assert.deepEqual(paths({ a: null }, { a: {} }), ["changed a"]);
    assert.deepEqual(paths({ a: undefined }, {}), ["removed a"]);
});

test("names of Object's own members are treated as data", () => {
    assert.deepEqual(paths({}, { toString: 1 }), ["added toString"]);
    assert.deepEqual(paths({ constructor: 1 }, {}), ["removed constructor"]);
});

test("plain lists are compared by index", () => {
    assert.deepEqual(paths([1, 2, 3], [1, 5]), ["changed 1", "removed 2"]);
    assert.deepEqual(paths([], ["x", "y"]), ["added 0", "added 1"]);
});

test("messages are compared by id", () => {
    const before = {
        messages: [
            message("1", "human", "hi"),
            message("2", "ai", "hello"),
            message("3", "human", "bye"),
        ],
    };
    const after = {
        messages: [
            message("2", "ai", "Hello."),
            message("3", "human", "bye"),
            message("4", "ai", "See you"),
        ],
    };
    const { changes } = diff(before, after);
    assert.deepEqual(
        changes.map(({ kind, path, label }) => [kind, path.join("."), label]),
        [
            ["removed", "messages.0", "human: hi"],
            ["changed", "messages.0.content", undefined],
            ["added", "messages.2", "ai: See you"],
        ],
    );
});

test("duplicate ids are not used", () => {
    const twice = [message("1", "ai", "a"), message("1", "ai", "b")];
    assert.deepEqual(
        paths({ messages: twice }, { messages: [...twice, message("2", "ai", "c")] }),
        ["added messages.2"],
    );
});

test("the number of changes is limited", () => {
    const after = Object.fromEntries(Array.from({ length: 50 }, (_, at) => [`m${at}`, at]));
    const { changes, isCut } = diff({}, after, 10);
    assert.equal(changes.length, 10);
    assert.equal(isCut, true);
    assert.equal(diff({}, after, 50).isCut, false);
});

test("very deep states are cut off", () => {
    const deep = (end: unknown) => {
        let value = end;
        for (let at = 0; at < 500; at++) value = { x: value };
        return value;
    };
    assert.deepEqual(diff(deep(1), deep(1)).changes, []);
    assert.equal(diff(deep(1), deep(2)).changes.length, 1);
});

test("labels", () => {
    assert.equal(labelOf(message("1", "ai", "It is  sunny\nin Rome")), "ai: It is sunny in Rome");
    assert.equal(
        labelOf({ type: "ai", content: "", tool_calls: [{ name: "weather" }] }),
        "ai: calls weather",
    );
    assert.equal(labelOf({ type: "ai", content: [{ type: "text", text: "x" }] }), "ai: x");
    assert.equal(labelOf({ type: "dog" }), undefined);
    assert.equal(labelOf("text"), undefined);
    assert.equal(labelOf(message("1", "ai", "x".repeat(200)))?.length, 85);
});
