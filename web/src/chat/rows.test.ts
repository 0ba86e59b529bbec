import assert from "node:assert/strict";
import { test } from "node:test";
import type { Message } from "@langchain/langgraph-sdk";
import type { Entry } from "./openThread";
import { rowsOf } from "./rows";
import { deepEqual } from "./deepEqual";

function entry(assistantId: string, message: object): Entry {
    const { id } = message as { id: string };
    return {
        key: `${assistantId}:${id}`,
        chat: { assistantId },
        message: message as Message,
        origin: undefined,
    } as Entry;
}
const human = (id: string) => ({ id, type: "human", content: id });
const call = (id: string, ...calls: string[]) => ({
    id,
    type: "ai",
    content: "",
    tool_calls: calls.map((one) => ({ id: one, name: "t", args: {} })),
});
const result = (id: string, tool_call_id: string) => ({
    id,
    type: "tool",
    content: "ok",
    tool_call_id,
});
const ids = (entries: Entry[]) => rowsOf(entries).map((row) => row.entry.message.id);

test("results belong to the row of their call", () => {
    const rows = rowsOf([
        entry("A", human("h")),
        entry("A", call("a", "1", "2")),
        entry("A", result("r2", "2")),
        entry("A", result("r1", "1")),
    ]);
    assert.deepEqual(
        rows.map((row) => row.entry.message.id),
        ["h", "a"],
    );
    assert.deepEqual(
        rows[1]?.results.map((one) => one.id),
        ["r1", "r2"],
    );
});

test("a result without its call has a row", () => {
    assert.deepEqual(ids([entry("A", human("h")), entry("A", result("r", "9"))]), ["h", "r"]);
});

test("a call of one agent is not answered by the result of another", () => {
    assert.deepEqual(ids([entry("A", call("a", "1")), entry("B", result("r", "1"))]), ["a", "r"]);
});

test("a single agent's name is shown once, several agents' names with each turn", () => {
    const ai = (id: string) => ({ id, type: "ai", content: id });
    const names = (entries: Entry[]) =>
        rowsOf(entries)
            .filter((row) => row.showsName)
            .map((row) => row.entry.message.id);
    assert.deepEqual(
        names([
            entry("A", human("1")),
            entry("A", ai("2")),
            entry("A", human("3")),
            entry("A", ai("4")),
        ]),
        ["2"],
    );
    assert.deepEqual(
        names([
            entry("A", human("1")),
            entry("A", ai("2")),
            entry("A", ai("3")),
            entry("B", human("4")),
            entry("B", ai("5")),
            entry("B", human("6")),
            entry("B", ai("7")),
        ]),
        ["2", "5", "7"],
    );
});

test("values are compared by content", () => {
    const value = { a: [1, { b: null }], c: "x" };
    assert.ok(deepEqual(value, structuredClone(value)));
    assert.ok(deepEqual(undefined, undefined));
    assert.ok(!deepEqual(value, { ...value, c: "y" }));
    assert.ok(!deepEqual({ a: undefined }, { b: undefined }));
    assert.ok(!deepEqual([1, 2], [1]));
    assert.ok(!deepEqual([], {}));
    assert.ok(!deepEqual(null, {}));
});
