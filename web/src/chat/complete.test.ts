import assert from "node:assert/strict";
import { test } from "node:test";
import { complete } from "./complete";

const cases: [name: string, before: string, after: string][] = [
    ["plain text stays", "Hello there", "Hello there"],
    ["an open bold is closed", "This is **very impor", "This is **very impor**"],
    ["a bold that has just begun is not shown", "This is **", "This is "],
    ["a closed one stays", "This is **done** now", "This is **done** now"],
    ["open code is closed", "Use `npm in", "Use `npm in`"],
    ["stars in code are not bold", "Use `a ** b` and", "Use `a ** b` and"],
    ["half a link is its text", "See [the docs](https://exam", "See the docs"],
    [
        "a whole link stays",
        "See [the docs](https://example.com)",
        "See [the docs](https://example.com)",
    ],
    ["brackets that are no link stay", "a list [1", "a list [1"],
    ["half a picture is nothing", "Look: ![a ca", "Look: "],
    ["the head of a table becomes one", "| a | b |", "| a | b |\n| --- | --- |"],
    ["with half a rule too", "| a | b |\n|--", "| a | b |\n| --- | --- |"],
    ["a table with rows stays", "| a |\n|---|\n| 1 |", "| a |\n|---|\n| 1 |"],
    ["nothing happens in an open fence", "```js\nlet a = `x", "```js\nlet a = `x"],
    [
        "only the last block is looked at",
        "An odd ` mark.\n\nThen **more",
        "An odd ` mark.\n\nThen **more**",
    ],
];

for (const [name, before, after] of cases) {
    test(name, () => assert.equal(complete(before), after));
}

test("complete Markdown stays unchanged, chunk by chunk", () => {
    const text =
        "A **bold** `code` [link](https://example.com) text.\n\n| a | b |\n|---|---|\n| 1 | 2 |\n\n```c\nint a;\n```\n\nEnd.";
    assert.equal(complete(text), text);
    for (let at = 0; at <= text.length; at++)
        assert.equal(typeof complete(text.slice(0, at)), "string");
});
