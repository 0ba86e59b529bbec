// The differences between two states: paths that were added, changed or removed. Lists of messages
// are compared by message id, so that an inserted message is one change. Pure.

export interface Change {
    kind: "added" | "changed" | "removed";
    /** The path: `messages › 3 › content`. */
    path: string[];
    before?: unknown;
    after?: unknown;
    /** A short form of a message: `ai: It is sunny`. */
    label?: string;
}

export interface Diff {
    changes: Change[];
    /** The list of changes is incomplete. */
    isCut: boolean;
}

const MOST = 200;
const DEEPEST = 64;
const LABEL = 80;

type Members = Record<string, unknown>;

const isMembers = (value: unknown): value is Members =>
    value !== null && typeof value === "object" && !Array.isArray(value);

interface Identified extends Members {
    id: string;
}

/** A list whose elements all have distinct ids. */
function identified(value: unknown): Identified[] | null {
    if (!Array.isArray(value)) return null;
    const list = value as unknown[];
    if (!list.every((one): one is Identified => isMembers(one) && typeof one.id === "string"))
        return null;
    return new Set(list.map((one) => one.id)).size === list.length ? list : null;
}

function textIn(content: unknown): string {
    if (typeof content === "string") return content;
    if (!Array.isArray(content)) return "";
    return content
        .map((block) => (isMembers(block) && typeof block.text === "string" ? block.text : ""))
        .join(" ");
}

export function labelOf(value: unknown): string | undefined {
    if (!isMembers(value) || typeof value.type !== "string" || !("content" in value))
        return undefined;
    const calls = Array.isArray(value.tool_calls) ? value.tool_calls : [];
    const named = calls.flatMap((call) =>
        isMembers(call) && typeof call.name === "string" ? call.name : [],
    );
    const text =
        textIn(value.content).replace(/\s+/g, " ").trim() ||
        (named.length > 0 ? `calls ${named.join(", ")}` : "");
    return `${value.type}: ${text.length > LABEL ? `${text.slice(0, LABEL)}…` : text}`;
}

export function diff(before: unknown, after: unknown, most = MOST): Diff {
    const changes: Change[] = [];
    let isCut = false;

    const add = (change: Change) => {
        isCut ||= changes.length === most;
        if (isCut) return;
        const label = labelOf(change.after ?? change.before);
        changes.push(label === undefined ? change : { ...change, label });
    };

    const compareMembers = (a: Members, b: Members, path: string[]) => {
        for (const name of Object.keys(a))
            if (!Object.hasOwn(b, name))
                add({ kind: "removed", path: [...path, name], before: a[name] });
        for (const name of Object.keys(b)) {
            if (Object.hasOwn(a, name)) compare(a[name], b[name], [...path, name]);
            else add({ kind: "added", path: [...path, name], after: b[name] });
        }
    };

    const compareIdentified = (a: Identified[], b: Identified[], path: string[]) => {
        const old = new Map(a.map((one, at) => [one.id, { one, at }]));
        const kept = new Set(b.map((one) => one.id));
        for (const { one, at } of old.values())
            if (!kept.has(one.id))
                add({ kind: "removed", path: [...path, String(at)], before: one });
        b.forEach((one, at) => {
            const was = old.get(one.id);
            if (was) compare(was.one, one, [...path, String(at)]);
            else add({ kind: "added", path: [...path, String(at)], after: one });
        });
    };

    const compareLists = (a: unknown[], b: unknown[], path: string[]) => {
        const both = Math.min(a.length, b.length);
        for (let at = 0; at < both; at++) compare(a[at], b[at], [...path, String(at)]);
        for (let at = both; at < a.length; at++)
            add({ kind: "removed", path: [...path, String(at)], before: a[at] });
        for (let at = both; at < b.length; at++)
            add({ kind: "added", path: [...path, String(at)], after: b[at] });
    };

    function compare(a: unknown, b: unknown, path: string[]) {
        if (isCut || Object.is(a, b)) return;
        if (path.length < DEEPEST) {
            const [first, second] = [identified(a), identified(b)];
            if (first && second && first.length + second.length > 0)
                return compareIdentified(first, second, path);
            if (Array.isArray(a) && Array.isArray(b)) return compareLists(a, b, path);
            if (isMembers(a) && isMembers(b)) return compareMembers(a, b, path);
        }
        if (path.length >= DEEPEST && JSON.stringify(a) === JSON.stringify(b)) return;
        add({ kind: "changed", path, before: a, after: b });
    }

    compare(before, after, []);
    return { changes, isCut };
}
