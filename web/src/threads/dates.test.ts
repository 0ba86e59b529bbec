import assert from "node:assert/strict";
import { test } from "node:test";
import { groupOf, shortDate, sizeOf, until } from "./dates";

const now = new Date(2026, 4, 20, 12, 0, 0);
const at = (...parts: [number, number, number, number?, number?, number?]) =>
    new Date(...parts).toISOString();

test("groups go by the calendar, not by hours", () => {
    assert.equal(groupOf(at(2026, 4, 20, 0, 1), now), "Today");
    assert.equal(groupOf(at(2026, 4, 19, 23, 59), now), "Yesterday");
    assert.equal(groupOf(at(2026, 4, 19, 0, 0), now), "Yesterday");
    assert.equal(groupOf(at(2026, 4, 18, 23, 59), now), "Earlier");
    assert.equal(groupOf(at(2026, 4, 20, 12, 1), now), "Today"); // a clock that is ahead
});

test("short dates", () => {
    assert.equal(shortDate(at(2026, 4, 20, 11, 59, 30), now), "now");
    assert.equal(shortDate(at(2026, 4, 20, 11, 15), now), "45 min");
    assert.match(shortDate(at(2026, 4, 20, 9, 5), now, "en-GB"), /^09:05$/);
    assert.equal(shortDate(at(2026, 4, 17, 9, 5), now, "en-GB"), "Sun");
    assert.equal(shortDate(at(2026, 3, 2, 9, 5), now, "en-GB"), "2 Apr");
    assert.equal(shortDate(at(2024, 3, 2, 9, 5), now, "en-GB"), "2 Apr 2024");
});

test("future times", () => {
    const then = (ms: number) => until(new Date(now.getTime() + ms).toISOString(), now);
    assert.equal(then(-5), "in less than a minute");
    assert.equal(then(60_000), "in 1 minute");
    assert.equal(then(3 * 3600_000), "in 3 hours");
    assert.equal(then(30 * 86_400_000), "in 30 days");
});

test("sizes", () => {
    assert.equal(sizeOf(0), "0 bytes");
    assert.equal(sizeOf(1), "1 byte");
    assert.equal(sizeOf(999), "999 bytes");
    assert.equal(sizeOf(1000), "1 KB");
    assert.equal(sizeOf(41_210), "41.2 KB");
    assert.equal(sizeOf(123_456_789), "123 MB");
});
