import assert from "node:assert/strict";
import { test } from "node:test";
import { addressOf, matchesOf, mentionAt } from "./address";

const agent = (name: string, graph_id = "agent") => ({
    assistant_id: `id-${name || graph_id}`,
    name,
    graph_id,
});
const list = [agent("Mail"), agent("Mail clerk"), agent("agent"), agent("", "demo")];

test("a name at the start addresses a message", () => {
    assert.deepEqual(addressOf("@Mail hello", list), { assistantId: "id-Mail", text: "hello" });
    assert.deepEqual(addressOf("@mail CLERK, hello\nthere", list), {
        assistantId: "id-Mail clerk",
        text: "hello\nthere",
    });
    assert.deepEqual(addressOf("  @demo: hi", list), { assistantId: "id-demo", text: "hi" });
    assert.deepEqual(addressOf("@Mail", list), { assistantId: "id-Mail", text: "" });
});

test("text without a known name is unchanged", () => {
    for (const text of ["hello @Mail", "@Mailer hello", "@nobody hi", "a@Mail", "@", " plain"])
        assert.deepEqual(addressOf(text, list), { assistantId: null, text });
});

test("a name is being typed up to the caret", () => {
    assert.equal(mentionAt("@ma hello", 3), "ma");
    assert.equal(mentionAt("@", 1), "");
    assert.equal(mentionAt("@ma", 0), null);
    assert.equal(mentionAt("hi @ma", 6), null);
    assert.equal(mentionAt("@a\nb", 4), null);
});

test("names with this prefix come first, and a whole name ends the search", () => {
    assert.deepEqual(
        matchesOf("a", list).map((one) => one.name || one.graph_id),
        ["agent", "Mail", "Mail clerk"],
    );
    assert.deepEqual(
        matchesOf("mail ", list).map((one) => one.name),
        ["Mail clerk"],
    );
    assert.deepEqual(matchesOf("mail clerk ", list), []);
    assert.deepEqual(matchesOf("", list, 2).length, 2);
});
