import assert from "node:assert/strict";
import { test } from "node:test";
import { assignColours, hashOf } from "./palette";

const ids = Array.from({ length: 20 }, (_, i) => `agent-${i}`);

test("up to eight agents have eight colours", () => {
    for (const count of [1, 2, 5, 8]) {
        const colours = [...assignColours(ids.slice(0, count)).values()];
        assert.equal(new Set(colours).size, count);
        assert.ok(colours.every((colour) => colour >= 0 && colour < 8));
    }
});

test("a new agent changes no other colour", () => {
    const before = assignColours(ids.slice(0, 12));
    const after = assignColours(ids);
    for (const [id, colour] of before) assert.equal(after.get(id), colour);
    assert.equal(after.get(ids[0]!), hashOf(ids[0]!));
});
