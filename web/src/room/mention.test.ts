import assert from "node:assert/strict";
import { test } from "node:test";
import { askedBy, insertName, namesFor, typedAt } from "./mention";

const all = [
    { id: "1", name: "Guide", type: "agent" as const },
    { id: "2", name: "Weather desk", type: "agent" as const },
    { id: "3", name: "gustav", type: "person" as const },
];

test("a name is typed anywhere at the beginning of a word", () => {
    assert.deepEqual(typedAt("ask @gu", 7), { start: 4, query: "gu" });
    assert.deepEqual(typedAt("@", 1), { start: 0, query: "" });
    assert.deepEqual(typedAt('and @"Weather d', 15), { start: 4, query: "Weather d" });
    assert.equal(typedAt("ann@example", 11), null);
    assert.equal(typedAt("nothing", 7), null);
    assert.equal(typedAt("@one\ntwo", 8), null);
});

test("several names are typed in one text", () => {
    assert.deepEqual(typedAt("@Guide and @wea", 15), { start: 11, query: "wea" });
});

test("names that begin with the text come before those with a word that does", () => {
    assert.deepEqual(
        namesFor("gu", all).map((one) => one.name),
        ["Guide", "gustav"],
    );
    assert.deepEqual(
        namesFor("de", all).map((one) => one.name),
        ["Weather desk"],
    );
    assert.equal(namesFor("", all).length, 3);
});

test("a complete name with a space after it closes the list", () => {
    assert.deepEqual(namesFor("Guide ", all), []);
});

test("the chosen name replaces the typed part only", () => {
    const text = "Ask @wea about rain";
    const typed = typedAt(text, 8)!;
    assert.deepEqual(insertName(text, 8, typed, "Weather desk"), {
        text: "Ask @Weather desk about rain",
        caret: 18,
    });
});

test("a text asks the agents it names, else the one it replies to, else the default", () => {
    const asks = (text: string, repliedTo: string | null = null) =>
        askedBy(text, all, repliedTo, "9");
    assert.deepEqual(asks("hello"), ["9"]);
    assert.deepEqual(asks("hello", "1"), ["1"]);
    assert.deepEqual(asks("@guide and @weather desk, and @Guide"), ["1", "2"]);
    assert.deepEqual(asks('@"Weather desk" rain?'), ["2"]);
    assert.deepEqual(asks("@gustav look"), []);
    assert.deepEqual(asks("in code: `@guide`"), ["9"]);
    assert.deepEqual(asks("@guides"), ["9"]);
});
