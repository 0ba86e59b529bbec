import assert from "node:assert/strict";
import { test } from "node:test";
import { entities } from "./entities";
import { highlight } from "./highlight";
import { fitted } from "./images";
import { isOwnImage, safeLink } from "./links";

test("no character of code is lost or added, in any language", () => {
    const code =
        '/* c */ if (a > 1.5) { s = "x\\"y"; } // end\n# note\n\'open\n`t ${1}` -- sql\n"""doc"""';
    for (const name of ["c", "ts", "python", "bash", "sql", "json", "unknown", ""])
        assert.equal(
            highlight(code, name)
                .map((piece) => piece.text)
                .join(""),
            code,
        );
});

test("token kinds are recognized", () => {
    const kinds = (code: string, name: string) =>
        highlight(code, name)
            .filter(({ kind }) => kind !== "plain")
            .map(({ kind, text }) => `${kind} ${text}`);
    assert.deepEqual(kinds("def f(): # x", "python"), ["keyword def", "comment # x"]);
    assert.deepEqual(kinds('let a = "b" + 12;', "js"), ["keyword let", 'string "b"', "number 12"]);
    assert.deepEqual(kinds("SELECT 'x'", "sql"), ["keyword SELECT", "string 'x'"]);
    assert.deepEqual(
        kinds("select /* open", "c"),
        ["comment /* open"].flatMap((one) => ["keyword select", one]),
    );
});

test("code that is too long is not coloured", () => {
    assert.equal(highlight("let a;\n".repeat(5000), "js").length, 1);
});

test("only web and mail links are allowed", () => {
    for (const good of ["https://example.com/a?b#c", "http://localhost:1", "mailto:a@example.com"])
        assert.equal(safeLink(good), good);
    for (const bad of [
        "javascript:alert(1)",
        "JAVASCRIPT:x",
        "data:text/html,x",
        "/threads",
        "#/t/1",
        "x",
        "vbscript:x",
        "",
    ])
        assert.equal(safeLink(bad), null);
});

test("only embedded images are shown", () => {
    assert.ok(isOwnImage("data:image/png;base64,AA"));
    for (const bad of [
        "https://example.com/a.png",
        "data:text/html,x",
        "blob:x",
        "//example.com/a.png",
        "",
    ])
        assert.ok(!isOwnImage(bad));
});

test("named character references are decoded", () => {
    assert.equal(
        entities("a &lt;b&gt; &amp;amp; &#65;&#x42; &nope; & &#0;"),
        "a <b> &amp; AB &nope; & &#0;",
    );
});

test("images keep their aspect ratio", () => {
    assert.deepEqual(fitted({ width: 4000, height: 1000 }), { width: 1568, height: 392 });
    assert.deepEqual(fitted({ width: 100, height: 50 }), { width: 100, height: 50 });
    assert.deepEqual(fitted({ width: 100000, height: 1 }), { width: 1568, height: 1 });
});
