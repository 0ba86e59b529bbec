// The branches of one agent's line as a tree for people: what differs, in order, and where one is.
// Pure.
import type { Branch } from "@/api/heddle";
import { textOf } from "@/chat/text";

export interface Node {
    branch: Branch;
    /** What a person calls it. */
    label: string;
    /** It has a name of its own; else the label is what was said. */
    isNamed: boolean;
    /** Another one that begins where it begins has the same label: a retry. */
    isAlike: boolean;
    /** Its place among those that begin where it begins, from 1, and how many they are. */
    number: number;
    of: number;
    /** The newest end below it: what a click shows. */
    leaf: string;
    /** On the way to what is shown; `isHere`: what is shown ends in it. */
    isOnWay: boolean;
    isHere: boolean;
    children: Node[];
}

const LABEL = 80;

export function shorten(text: string): string {
    const line = text.trim().replace(/\s+/g, " ");
    return line.length > LABEL ? `${line.slice(0, LABEL).trimEnd()}…` : line;
}

function saidIn({ message }: Branch): string {
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
    return branch.name || saidIn(branch) || (branch.parent_branch_id ? "Goes on" : "The beginning");
}

/** The branch that a checkpoint is on: checkpoints on one way have ascending ids. */
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
 * Who grows from whom. A branch whose parent is not known begins the tree, as does one that goes in
 * circles.
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
 * Where a turn was begun anew there may be a piece of the way on which nothing is said yet. Nobody
 * would know what it is: what grows from it takes its place, so that all versions of a turn stand
 * side by side.
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

/** `shown`: the checkpoint whose way is shown. */
export function buildTree(branches: Branch[], shown: string | null): Node[] {
    const kin = kinOf(branches);
    const byId = new Map(branches.map((branch) => [branch.branch_id, branch]));
    const here = branchOf(branches, shown);
    const way = new Set<string>();
    for (let at = here; at && !way.has(at.branch_id); at = byId.get(at.parent_branch_id ?? ""))
        way.add(at.branch_id);

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
                isOnWay: way.has(branch.branch_id),
                isHere: here?.branch_id === branch.branch_id,
                children,
            };
        });
    };
    return grow(kin.roots);
}

/** From top to bottom, as they are drawn. */
export function flatten(nodes: Node[]): Node[] {
    return nodes.flatMap((node) => [node, ...flatten(node.children)]);
}

export interface Loss {
    steps: number;
    /** The ends of the ways that are lost, as many as there are branches for people. */
    leaves: string[];
}

/** What goes when a branch is pruned: itself and all that grows from it. */
export function lossOf(node: Node): Loss {
    const all = flatten([node]);
    const leaves = all
        .filter(({ children }) => children.length === 0)
        .map(({ branch }) => branch.head_checkpoint_id);
    return { steps: all.reduce((sum, { branch }) => sum + branch.checkpoints, 0), leaves };
}

/** The whole of the conversation cannot be pruned: it would be deleting it. */
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
