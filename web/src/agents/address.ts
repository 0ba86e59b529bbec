// The addressee of a message: "@name" at its start. Names may contain spaces. Pure.
import type { Assistant } from "@langchain/langgraph-sdk";

export interface Addressed {
    /** null: the message names no agent. */
    assistantId: string | null;
    /** The text without the name. */
    text: string;
}

type Known = Pick<Assistant, "assistant_id" | "name" | "graph_id">;

const nameOf = (one: Known) => one.name || one.graph_id;

function isEnd(char: string | undefined): boolean {
    return char === undefined || /[\s,:]/.test(char);
}

/** The longest matching name wins, so that "@Mail clerk" does not select "Mail". */
export function addressOf(text: string, assistants: readonly Known[]): Addressed {
    const trimmed = text.trimStart();
    if (!trimmed.startsWith("@")) return { assistantId: null, text };
    const typed = trimmed.slice(1);
    const lower = typed.toLowerCase();
    let found: Known | null = null;
    for (const one of assistants) {
        const name = nameOf(one).toLowerCase();
        const isNamed = name !== "" && lower.startsWith(name) && isEnd(typed[name.length]);
        if (isNamed && (!found || name.length > nameOf(found).length)) found = one;
    }
    if (!found) return { assistantId: null, text };
    return {
        assistantId: found.assistant_id,
        text: typed.slice(nameOf(found).length).replace(/^[,:]?\s*/, ""),
    };
}

const LONGEST = 100;

/**
 * The part of a name typed at the start of a message, up to the caret; null: no name is being
 * typed.
 */
export function mentionAt(text: string, caret: number): string | null {
    if (!text.startsWith("@") || caret < 1 || caret > LONGEST) return null;
    const query = text.slice(1, caret);
    return query.includes("\n") ? null : query;
}

/** Agents whose name contains the typed text; names that start with it come first. */
export function matchesOf<T extends Known>(query: string, assistants: readonly T[], most = 8): T[] {
    const wanted = query.toLowerCase();
    if (
        wanted.endsWith(" ") &&
        assistants.some((one) => nameOf(one).toLowerCase() === wanted.trimEnd())
    ) {
        const longer = assistants.filter((one) => nameOf(one).toLowerCase().startsWith(wanted));
        return longer.slice(0, most);
    }
    const begins = assistants.filter((one) => nameOf(one).toLowerCase().startsWith(wanted));
    const has = assistants.filter(
        (one) => !begins.includes(one) && nameOf(one).toLowerCase().includes(wanted),
    );
    return [...begins, ...has].slice(0, most);
}
