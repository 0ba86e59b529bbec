// Derives the outcome of a run from a state, a stream and the run's end. Pure.
import type { Interrupt, Message, ThreadState } from "@langchain/langgraph-sdk";
import { reasonOf } from "@/api/client";
import type { Receipt, State } from "@/api/heddle";

export interface Failure {
    reason: string;
    /**
     * "send": the server has not accepted the message; "run": the run failed; "load": the state
     * could not be loaded.
     */
    kind: "send" | "run" | "load";
    /** The streamed part of a message that was not stored. */
    partial: Message | null;
}

export interface Stopped {
    /** null: the receipt is unknown. */
    receipt: Receipt | null;
    /** The streamed part of a message that was not stored. */
    partial: Message | null;
}

/** The end of a turn without a complete answer: shown as long as the page is open. */
export interface Broken {
    failure: Failure | null;
    stopped: Stopped | null;
}

/** A message with the server's mark for a stopped answer. */
export function isStopped(message: Message): boolean {
    return message.response_metadata?.stopped === true;
}

/** The newest run of an agent that has ended. */
export interface Ended {
    runId: string;
    status: string;
    receipt: Receipt | null;
}

type StoredState = ThreadState<State> | null;

const noMessages: Message[] = [];

export function messagesOf(state: StoredState): Message[] {
    const list = state?.values?.messages;
    return Array.isArray(list) ? list : noMessages;
}

export function questionsOf(state: StoredState): Interrupt[] {
    return (state?.tasks ?? []).flatMap((task) => task.interrupts ?? []);
}

/** The message that was being written when a run ended without storing it. */
export function unstoredOf(live: Message[], kept: Message[]): Message | null {
    const last = live.at(-1);
    if (!last || last.type !== "ai") return null;
    return kept.some((message) => message.id === last.id) ? null : last;
}

/**
 * A stream that is read again from its start is behind the known messages until it has caught up.
 */
export function isBehind(live: Message[], kept: Message[]): boolean {
    return live.length < kept.length && live.every((message, i) => message.id === kept[i]?.id);
}

export function failureOf(error: unknown, state: StoredState): Failure | null {
    if (error) return { reason: reasonOf(error), kind: "load", partial: null };
    const failed = (state?.tasks ?? []).find((task) => task.error);
    return failed ? { reason: textOfError(failed.error), kind: "run", partial: null } : null;
}

/** A chat with pending nodes, without interrupts or failure, whose last run has a receipt. */
export function stoppedOf(state: StoredState, ended: Ended | null): Stopped | null {
    if (!state || !ended?.receipt || (state.next ?? []).length === 0) return null;
    if (questionsOf(state).length > 0 || failureOf(null, state)) return null;
    return { receipt: ended.receipt, partial: null };
}

/** Reduces `BadRequestError('no such model')` to its message. */
function plain(text: string): string {
    const quoted = /^\w+\((['"])([\s\S]*)\1,?\)$/.exec(text.trim());
    return quoted?.[2] ? quoted[2].replace(/\\(['"\\])/g, "$1").replaceAll("\\n", "\n") : text;
}

/** Tasks store an error as a text, or as the JSON text of `{error, message}`. */
export function textOfError(error: unknown): string {
    if (typeof error !== "string") return JSON.stringify(error);
    try {
        const { message } = JSON.parse(error) as { message?: unknown };
        return plain(typeof message === "string" ? message : error);
    } catch {
        return plain(error);
    }
}
