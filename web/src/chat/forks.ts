// Edits and retries: which messages are sent again, from which checkpoint, and what the switcher
// shows until the server knows of it. Pure.
import type { Message } from "@langchain/langgraph-sdk";
import type { Origin } from "@/api/heddle";
import { newId } from "@/api/ids";

export interface Fork {
    /** Where the new branch begins; null: at the shown head. */
    checkpointId: string | null;
    /** The first message of the turn that is said anew, and the one in its place. */
    replaced: string;
    added: string;
    /** Branches of that turn that were there before. */
    known: ReadonlySet<string>;
    created_at: string;
}

export interface Again {
    fork: Fork;
    before: Message[];
    added: Message[];
}

/**
 * What to send to say a turn again: all of its messages (one run may have brought several), with
 * fresh ids, because a message with a known id would replace the old one on every branch. `content`
 * null: unchanged.
 */
export function retryOf(
    messages: Message[],
    messageId: string,
    content: Message["content"] | null,
    origins: ReadonlyMap<string, Origin>,
): Again | null {
    const origin = origins.get(messageId);
    const at = messages.findIndex((message) => message.id === messageId);
    if (!origin || at < 0) return null;
    const isOfTurn = (message: Message) =>
        message.type === "human" &&
        origins.get(message.id ?? "")?.checkpoint_id === origin.checkpoint_id;
    const first = messages.findIndex(isOfTurn);
    const turn = messages.filter(isOfTurn);
    const added = turn.map((message) => ({
        ...message,
        id: newId(),
        content: content !== null && message.id === messageId ? content : message.content,
    })) as Message[];
    return {
        fork: {
            checkpointId: origin.fork_checkpoint_id,
            replaced: turn[0]?.id ?? messageId,
            added: added[0]?.id ?? "",
            known: new Set(origin.alternatives.map((one) => one.branch_id)),
            created_at: new Date().toISOString(),
        },
        before: messages.slice(0, first),
        added,
    };
}

/**
 * The turn's alternatives, with one for the way that is just being begun, unless the server knows
 * it by now.
 */
function withNew(origin: Origin, fork: Fork, isShown: boolean): Origin {
    if (origin.alternatives.some((one) => !fork.known.has(one.branch_id))) return origin;
    const begun = {
        branch_id: fork.added,
        head_checkpoint_id: "",
        created_at: fork.created_at,
        current: isShown,
    };
    const others = isShown
        ? origin.alternatives.map((one) => ({ ...one, current: false }))
        : origin.alternatives;
    return { ...origin, alternatives: [...others, begun] };
}

/**
 * The origins, with one for a message that is just being sent, and a place for it at those it is
 * told apart from.
 */
export function withFork(
    origins: ReadonlyMap<string, Origin>,
    fork: Fork | null,
): ReadonlyMap<string, Origin> {
    const old = fork ? origins.get(fork.replaced) : undefined;
    if (!fork || !old) return origins;
    const all = new Map(origins);
    for (const [id, origin] of origins) {
        if (origin.alternatives.length > 0 && origin.fork_checkpoint_id === old.fork_checkpoint_id)
            all.set(id, withNew(origin, fork, false));
    }
    if (!origins.has(fork.added))
        all.set(fork.added, { ...withNew(old, fork, true), id: fork.added });
    return all;
}
