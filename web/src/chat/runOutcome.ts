// What a state, a stream and the end of a run say about a chat. Pure.
import type { Interrupt, Message, ThreadState } from "@langchain/langgraph-sdk";
import { reasonOf } from "@/api/client";
import type { Receipt, State } from "@/api/heddle";

export interface Failure {
    reason: string;
    /**
     * "send": the server has not taken the message; "run": the agent failed; "load": the state
     * can't be read.
     */
    kind: "send" | "run" | "load";
    /** What had been streamed of a message that was not kept. */
    partial: Message | null;
}

export interface Stopped {
    /** null: how it was stopped is not known. */
    receipt: Receipt | null;
    /** What had been streamed of a message that was not kept. */
    partial: Message | null;
}

/** How a turn ended that has no whole answer: shown with it as long as the page is open. */
export interface Broken {
    failure: Failure | null;
    stopped: Stopped | null;
}

/** A message that the agent was stopped in, as the server marks it. */
export function isStopped(message: Message): boolean {
    return message.response_metadata?.stopped === true;
}

/** The newest run of an agent that has ended. */
export interface Ended {
    runId: string;
    status: string;
    receipt: Receipt | null;
}

type Kept = ThreadState<State> | null;

const noMessages: Message[] = [];

export function messagesOf(state: Kept): Message[] {
    const list = state?.values?.messages;
    return Array.isArray(list) ? list : noMessages;
}

export function questionsOf(state: Kept): Interrupt[] {
    return (state?.tasks ?? []).flatMap((task) => task.interrupts ?? []);
}

/** The message that was being written when a run ended without keeping it. */
export function unkeptOf(live: Message[], kept: Message[]): Message | null {
    const last = live.at(-1);
    if (!last || last.type !== "ai") return null;
    return kept.some((message) => message.id === last.id) ? null : last;
}

/**
 * A stream that is read again from its beginning is behind what is known until it has caught up.
 */
export function isBehind(live: Message[], kept: Message[]): boolean {
    return live.length < kept.length && live.every((message, i) => message.id === kept[i]?.id);
}

export function failureOf(error: unknown, state: Kept): Failure | null {
    if (error) return { reason: reasonOf(error), kind: "load", partial: null };
    const failed = (state?.tasks ?? []).find((task) => task.error);
    return failed ? { reason: textOfError(failed.error), kind: "run", partial: null } : null;
}

/**
 * A chat that rests in the middle of its work, neither asks nor has failed, and whose last run has
 * a receipt.
 */
export function stoppedOf(state: Kept, ended: Ended | null): Stopped | null {
    if (!state || !ended?.receipt || (state.next ?? []).length === 0) return null;
    if (questionsOf(state).length > 0 || failureOf(null, state)) return null;
    return { receipt: ended.receipt, partial: null };
}

/** `BadRequestError('no such model')` is for programs: people read what it says. */
function plain(text: string): string {
    const quoted = /^\w+\((['"])([\s\S]*)\1,?\)$/.exec(text.trim());
    return quoted?.[2] ? quoted[2].replace(/\\(['"\\])/g, "$1").replaceAll("\\n", "\n") : text;
}

/** Tasks keep an error as a text, or as the JSON text of `{error, message}`. */
export function textOfError(error: unknown): string {
    if (typeof error !== "string") return JSON.stringify(error);
    try {
        const { message } = JSON.parse(error) as { message?: unknown };
        return plain(typeof message === "string" ? message : error);
    } catch {
        return plain(error);
    }
}
