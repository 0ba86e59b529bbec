import assert from "node:assert/strict";
import test from "node:test";
import type { Message } from "@langchain/langgraph-sdk";
import type { Alternative, Origin } from "@/api/heddle";
import { retryOf, withFork } from "./forks";
import { headOf, withHead } from "./heads";

const human = (id: string, content: Message["content"] = id) =>
    ({ type: "human", id, content }) as Message;
const ai = (id: string) => ({ type: "ai", id, content: id }) as Message;

function alternative(id: string, current = false): Alternative {
    return {
        branch_id: id,
        head_checkpoint_id: `${id}-head`,
        created_at: "2026-01-01T00:00:00Z",
        current,
    };
}

function origin(
    id: string,
    checkpoint: string,
    fork: string | null,
    alternatives: Alternative[] = [],
): Origin {
    return {
        id,
        type: fork ? "human" : "ai",
        checkpoint_id: checkpoint,
        run_id: null,
        created_at: "2026-01-01T00:00:00Z",
        delegated: false,
        fork_checkpoint_id: fork,
        alternatives,
    };
}

const mapOf = (...list: Origin[]) => new Map(list.map((one) => [one.id, one]));

test("a retry sends the same content with new ids from the start of the turn", () => {
    const messages = [human("a"), ai("b"), human("c"), ai("d")];
    const origins = mapOf(
        origin("a", "1", "0"),
        origin("b", "2", null),
        origin("c", "4", "2", [alternative("3", true)]),
    );
    const again = retryOf(messages, "c", null, origins);
    assert.equal(again?.fork.checkpointId, "2");
    assert.deepEqual(again?.before, messages.slice(0, 2));
    assert.deepEqual(
        again?.added.map(({ content }) => content),
        ["c"],
    );
    assert.notEqual(again?.added[0]?.id, "c");
    assert.deepEqual(again?.fork.known, new Set(["3"]));
});

test("an edit changes one message of a turn and resends all of them", () => {
    const origins = mapOf(origin("a", "1", "0"), origin("b", "1", "0"));
    const again = retryOf([human("a"), human("b"), ai("c")], "b", "new", origins);
    assert.deepEqual(
        again?.added.map(({ content }) => content),
        ["a", "new"],
    );
    assert.equal(again?.fork.replaced, "a");
    assert.equal(new Set(again?.added.map(({ id }) => id)).size, 2);
    assert.deepEqual(again?.before, []);
});

test("a message that the server does not know cannot be retried", () => {
    assert.equal(retryOf([human("a")], "a", null, new Map()), null);
    assert.equal(retryOf([], "a", null, mapOf(origin("a", "1", "0"))), null);
});

test("a fork is counted before the server lists it, and once", () => {
    const old = origin("a", "1", "0", [alternative("1"), alternative("2", true)]);
    const sibling = origin("s", "9", "0", [alternative("1", true), alternative("2")]);
    const fork = {
        checkpointId: "0",
        replaced: "a",
        added: "n",
        known: new Set(["1", "2"]),
        created_at: "now",
    };
    const shown = withFork(mapOf(old, sibling), fork);
    assert.deepEqual(
        shown.get("n")?.alternatives.map(({ current }) => current),
        [false, false, true],
    );
    assert.deepEqual(
        shown.get("s")?.alternatives.map(({ current }) => current),
        [true, false, false],
    );
    const listed = origin("s", "9", "0", [
        alternative("1", true),
        alternative("2"),
        alternative("3"),
    ]);
    assert.equal(withFork(mapOf(old, listed), fork).get("s")?.alternatives.length, 3);
    const plain = mapOf(old);
    assert.equal(withFork(plain, null), plain);
});

test("the URL has a head for each agent", () => {
    const none = { at: null, agent: null };
    const one = withHead(none, "x", "1");
    assert.deepEqual(one, { at: "1", agent: "x" });
    const two = withHead(one, "y", "2");
    assert.deepEqual([headOf(two, "x"), headOf(two, "y"), headOf(two, "z")], ["1", "2", null]);
    assert.deepEqual(withHead(two, "x", null), { at: "2", agent: "y" });
    assert.deepEqual(withHead(one, "x", null), none);
    assert.equal(headOf({ at: "1", agent: null }, "anybody"), "1");
});
