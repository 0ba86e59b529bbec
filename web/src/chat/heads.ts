// The shown branch of each agent in the URL: `at` and `agent` are lists of equal length. An agent
// that is not listed is shown at its latest checkpoint; a checkpoint without an agent applies to
// all.

export interface Heads {
    at: string | null;
    agent: string | null;
}

const ANYBODY = "";

function read({ at, agent }: Heads): Map<string, string> {
    const agents = agent?.split(",") ?? [];
    const heads = new Map<string, string>();
    at?.split(",").forEach((head, i) => {
        if (head) heads.set(agents[i] ?? ANYBODY, head);
    });
    return heads;
}

/** The selected head of an agent; null: its latest checkpoint. */
export function headOf(heads: Heads, assistantId: string): string | null {
    const chosen = read(heads);
    return chosen.get(assistantId) ?? chosen.get(ANYBODY) ?? null;
}

/** The same with another head for one agent. */
export function withHead(heads: Heads, assistantId: string, head: string | null): Heads {
    const next = read(heads);
    next.delete(ANYBODY);
    next.delete(assistantId);
    if (head) next.set(assistantId, head);
    if (next.size === 0) return { at: null, agent: null };
    return { at: [...next.values()].join(","), agent: [...next.keys()].join(",") };
}
