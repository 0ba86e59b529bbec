import assert from "node:assert/strict";
import test from "node:test";
import type { Branch } from "@/api/heddle";
import { withText } from "./content";
import {
    agoOf,
    branchOf,
    buildTree,
    canPrune,
    flatten,
    labelOf,
    lossOf,
    plural,
    type Node,
} from "./model";

function branch(id: string, parent: string | null, more: Partial<Branch> = {}): Branch {
    return {
        branch_id: id,
        parent_branch_id: parent,
        fork_checkpoint_id: parent,
        head_checkpoint_id: `${id}9`,
        leaf: true,
        current: false,
        checkpoints: 3,
        source: "input",
        run_id: null,
        created_at: "2026-01-01T00:00:00Z",
        updated_at: "2026-01-01T00:00:00Z",
        message: { type: "human", id: `m${id}`, content: `message ${id}` },
        answer: null,
        name: null,
        ...more,
    };
}

const shape = (nodes: Node[]): unknown => nodes.map((node) => [node.label, shape(node.children)]);

const twoForks = [
    branch("1", null),
    branch("2", "1"),
    branch("3", "1"),
    branch("4", "2"),
    branch("5", "2"),
];

test("alternatives are children of their parent, oldest first", () => {
    const tree = buildTree(
        [branch("3", "1"), branch("1", null, { leaf: false }), branch("2", "1")],
        null,
    );
    assert.deepEqual(shape(tree), [
        [
            "message 1",
            [
                ["message 2", []],
                ["message 3", []],
            ],
        ],
    ]);
    assert.deepEqual(
        tree[0]?.children.map(({ number, of }) => [number, of]),
        [
            [1, 2],
            [2, 2],
        ],
    );
});

test("a segment without messages is replaced by its children", () => {
    const bare = { message: null, leaf: false };
    const list = [
        branch("1", null, bare),
        branch("2", "1"),
        branch("3", "1", bare),
        branch("4", "3"),
        branch("5", "3"),
    ];
    assert.deepEqual(shape(buildTree(list, null)), [
        ["message 2", []],
        ["message 4", []],
        ["message 5", []],
    ]);
    assert.deepEqual(
        buildTree(list, null).map(({ of }) => of),
        [3, 3, 3],
    );
    const named = buildTree(
        [branch("1", null, { ...bare, name: "Start" }), branch("2", "1")],
        null,
    );
    assert.deepEqual(shape(named), [["Start", [["message 2", []]]]]);
});

test("the shown branch, its path, and the newest leaf of each branch", () => {
    const nodes = flatten(buildTree(twoForks, "49"));
    assert.deepEqual(
        nodes.filter((node) => node.isOnPath).map(({ branch }) => branch.branch_id),
        ["1", "2", "4"],
    );
    assert.deepEqual(
        nodes.filter((node) => node.isHere).map(({ branch }) => branch.branch_id),
        ["4"],
    );
    assert.deepEqual(
        nodes.map(({ leaf }) => leaf),
        ["59", "59", "49", "59", "39"],
    );
});

test("a checkpoint in the middle of a branch belongs to it", () => {
    const list = [
        branch("10", null, { head_checkpoint_id: "15" }),
        branch("20", "10", { head_checkpoint_id: "25" }),
    ];
    assert.equal(branchOf(list, "12")?.branch_id, "10");
    assert.equal(branchOf(list, "20")?.branch_id, "20");
    assert.equal(branchOf(list, "99"), undefined);
    assert.equal(branchOf(list, null), undefined);
});

test("missing parents and cycles are tolerated", () => {
    assert.deepEqual(shape(buildTree([branch("2", "gone")], null)), [["message 2", []]]);
    const circle = buildTree([branch("1", "2"), branch("2", "1")], "19");
    assert.deepEqual(shape(circle), [["message 1", [["message 2", []]]]]);
    assert.deepEqual(buildTree([], null), []);
});

test("labels are a name, a text, an image, a tool, or a default", () => {
    const ai = (content: unknown, more = {}) =>
        ({ type: "ai", id: "x", content, ...more }) as Branch["message"];
    assert.equal(labelOf(branch("1", null, { name: "Plan B" })), "Plan B");
    assert.equal(labelOf(branch("1", null, { message: ai("  two\n lines ") })), "two lines");
    assert.equal(
        labelOf(branch("1", null, { message: ai("x".repeat(200)) })),
        `${"x".repeat(80)}…`,
    );
    assert.equal(
        labelOf(branch("1", null, { message: ai([{ type: "image_url", image_url: "data:" }]) })),
        "An image",
    );
    assert.equal(
        labelOf(
            branch("1", null, { message: ai("", { tool_calls: [{ name: "weather", args: {} }] }) }),
        ),
        "Uses weather",
    );
    assert.equal(labelOf(branch("1", null, { message: null })), "Start");
    assert.equal(labelOf(branch("2", "1", { message: null })), "Continues");
});

test("retries of one text are alike, a name distinguishes one", () => {
    const message = { type: "human" as const, id: "m", content: "again" };
    const [root] = buildTree(
        [
            branch("1", null),
            branch("2", "1", { message }),
            branch("3", "1", { message }),
            branch("4", "1", { message, name: "The best" }),
            branch("5", "2", { message }),
            branch("6", "2"),
        ],
        null,
    );
    const [first] = root!.children;
    assert.deepEqual(
        [root!, ...root!.children, ...first!.children].map(({ isAlike }) => isAlike),
        [false, true, true, false, false, false],
    );
});

test("pruning removes a branch and its descendants", () => {
    const [root] = buildTree(twoForks, null);
    assert.deepEqual(lossOf(root!.children[0]!), { steps: 9, leaves: ["49", "59"] });
    assert.equal(canPrune(root!), false);
    assert.equal(canPrune(root!.children[0]!), true);
    assert.deepEqual(buildTree([branch("1", null), branch("2", null)], null).map(canPrune), [
        true,
        true,
    ]);
});

test("times and numbers in words", () => {
    const now = Date.parse("2026-01-02T00:00:00Z");
    assert.equal(agoOf("2026-01-01T23:59:30Z", now), "just now");
    assert.equal(agoOf("2026-01-01T23:58:00Z", now), "2 minutes ago");
    assert.equal(agoOf("2026-01-01T00:00:00Z", now), "yesterday");
    assert.equal(agoOf("2026-01-03T00:00:00Z", now), "just now");
    assert.equal(agoOf("nonsense", now), "");
    assert.deepEqual([plural(1, "branch", "branches"), plural(2, "step")], ["1 branch", "2 steps"]);
});

test("another text leaves the other parts of a message unchanged", () => {
    const image = { type: "image_url" as const, image_url: "data:image/png;base64,x" };
    const text = (value: string) => ({ type: "text" as const, text: value });
    assert.equal(withText("old", "new"), "new");
    assert.deepEqual(withText([text("a"), image, text("b")], "new"), [text("new"), image]);
    assert.deepEqual(withText([image, text("a")], "new"), [image, text("new")]);
    assert.deepEqual(withText([image], "new"), [image, text("new")]);
    assert.deepEqual(withText([text("a"), image], " "), [image]);
});
