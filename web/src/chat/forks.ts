// Edits and retries: the messages to resend, the checkpoint to start from, and the versions to show
// until the server lists them. Pure.
import type { Message } from "@langchain/langgraph-sdk";
import type { Origin } from "@/api/heddle";
import { newId } from "@/api/ids";

export interface Fork {
    /** The checkpoint that the new branch starts from; null: the shown head. */
    checkpointId: string | null;
    /** The first message of the replaced turn, and its replacement. */
    replaced: string;
    added: string;
    /** Branches of that turn that existed before. */
    known: ReadonlySet<string>;
    created_at: string;
}

export interface Again {
    fork: Fork;
    before: Message[];
    added: Message[];
}

/**
 * The messages to resend for a turn: all of its messages (a run may have several), with new ids,
 * because a message with a known id would replace the old one on every branch. `content` null:
 * unchanged.
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

/** The versions of a turn, with the new one added until the server lists it. */
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
 * The origins, with an entry for the message that is being sent, also among the alternatives of its
 * turn.
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
