// The branches of one agent as a tree to display, with the shown branch marked. Pure.
import type { Branch } from "@/api/heddle";
import { textOf } from "@/chat/text";

export interface Node {
    branch: Branch;
    /** The display name. */
    label: string;
    /** The branch has a name; otherwise the label is its first message. */
    isNamed: boolean;
    /** A sibling has the same label: a retry. */
    isAlike: boolean;
    /** The position among its siblings, from 1, and the number of siblings. */
    number: number;
    of: number;
    /** The newest leaf below it: a click shows this checkpoint. */
    leaf: string;
    /** On the path to the shown checkpoint; `isHere`: the shown checkpoint is on this branch. */
    isOnPath: boolean;
    isHere: boolean;
    children: Node[];
}

const LABEL = 80;

export function shorten(text: string): string {
    const line = text.trim().replace(/\s+/g, " ");
    return line.length > LABEL ? `${line.slice(0, LABEL).trimEnd()}…` : line;
}

function summaryOf({ message }: Branch): string {
    if (!message) return "";
    const text = shorten(textOf(message.content ?? ""));
    if (text) return text;
    if (
        Array.isArray(message.content) &&
        message.content.some((block) => block.type === "image_url")
    )
        return "An image";
    const calls = "tool_calls" in message ? (message.tool_calls ?? []) : [];
    return calls.length > 0 ? `Uses ${calls.map((call) => call.name).join(", ")}` : "";
}

export function labelOf(branch: Branch): string {
    return branch.name || summaryOf(branch) || (branch.parent_branch_id ? "Continues" : "Start");
}

/** The branch of a checkpoint: checkpoints along a branch have ascending ids. */
export function branchOf(branches: Branch[], checkpointId: string | null): Branch | undefined {
    if (checkpointId === null) return undefined;
    return (
        branches.find((branch) => branch.head_checkpoint_id === checkpointId) ??
        branches.findLast(
            (branch) =>
                branch.branch_id <= checkpointId && checkpointId <= branch.head_checkpoint_id,
        )
    );
}

interface Kin {
    roots: Branch[];
    of: ReadonlyMap<string, Branch[]>;
}

/**
 * Builds the tree from parent ids. A branch whose parent is unknown is a root, as is one in a
 * cycle.
 */
function kinOf(branches: Branch[]): Kin {
    const known = new Set<string>();
    const of = new Map<string, Branch[]>();
    const roots: Branch[] = [];
    for (const branch of [...branches].sort((a, b) => (a.branch_id < b.branch_id ? -1 : 1))) {
        const parent = branch.parent_branch_id;
        if (parent !== null && known.has(parent))
            of.set(parent, [...(of.get(parent) ?? []), branch]);
        else roots.push(branch);
        known.add(branch.branch_id);
    }
    return { roots, of };
}

/**
 * A branch point may have a segment without messages. The segment has no useful label, so its
 * children replace it: all versions of a turn are siblings.
 */
function lifted(list: Branch[], kin: Kin): Branch[] {
    return list.flatMap((branch) => {
        const children = kin.of.get(branch.branch_id) ?? [];
        const isBare = !branch.message && !branch.name && children.length > 0;
        return isBare ? lifted(children, kin) : [branch];
    });
}

function repeated(labels: string[]): ReadonlySet<string> {
    const seen = new Set<string>();
    return new Set(labels.filter((label) => seen.size === seen.add(label).size));
}

/** `shown`: the checkpoint whose branch is shown. */
export function buildTree(branches: Branch[], shown: string | null): Node[] {
    const kin = kinOf(branches);
    const byId = new Map(branches.map((branch) => [branch.branch_id, branch]));
    const here = branchOf(branches, shown);
    const path = new Set<string>();
    for (let at = here; at && !path.has(at.branch_id); at = byId.get(at.parent_branch_id ?? ""))
        path.add(at.branch_id);

    const grow = (list: Branch[]): Node[] => {
        const all = lifted(list, kin);
        const alike = repeated(all.map(labelOf));
        return all.map((branch, i): Node => {
            const children = grow(kin.of.get(branch.branch_id) ?? []);
            return {
                branch,
                label: labelOf(branch),
                isNamed: Boolean(branch.name),
                isAlike: alike.has(labelOf(branch)),
                number: i + 1,
                of: all.length,
                leaf: children.reduce(
                    (best, child) => (child.leaf > best ? child.leaf : best),
                    branch.head_checkpoint_id,
                ),
                isOnPath: path.has(branch.branch_id),
                isHere: here?.branch_id === branch.branch_id,
                children,
            };
        });
    };
    return grow(kin.roots);
}

/** From top to bottom, in display order. */
export function flatten(nodes: Node[]): Node[] {
    return nodes.flatMap((node) => [node, ...flatten(node.children)]);
}

export interface Loss {
    steps: number;
    /** The leaves that pruning removes. */
    leaves: string[];
}

/** The branch and all of its descendants. */
export function lossOf(node: Node): Loss {
    const all = flatten([node]);
    const leaves = all
        .filter(({ children }) => children.length === 0)
        .map(({ branch }) => branch.head_checkpoint_id);
    return { steps: all.reduce((sum, { branch }) => sum + branch.checkpoints, 0), leaves };
}

/** The root cannot be pruned: that would delete the conversation. */
export function canPrune(node: Node): boolean {
    return node.of > 1 || node.branch.parent_branch_id !== null;
}

const UNITS: [Intl.RelativeTimeFormatUnit, number][] = [
    ["year", 365 * 86400],
    ["month", 30 * 86400],
    ["week", 7 * 86400],
    ["day", 86400],
    ["hour", 3600],
    ["minute", 60],
];

/** "3 hours ago". */
export function agoOf(time: string, now: number): string {
    const seconds = (now - Date.parse(time)) / 1000;
    if (Number.isNaN(seconds)) return "";
    const [unit, length] = UNITS.find(([, length]) => seconds >= length) ?? [null, 1];
    if (!unit) return "just now";
    return new Intl.RelativeTimeFormat("en", { numeric: "auto" }).format(
        -Math.floor(seconds / length),
        unit,
    );
}

export function plural(count: number, one: string, many = `${one}s`): string {
    return `${count} ${count === 1 ? one : many}`;
}
