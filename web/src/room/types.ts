// The records of rooms as the server sends them.
import type { Interrupt, Message } from "@langchain/langgraph-sdk";
import type { Sender } from "@/api/heddle";

export type { Sender } from "@/api/heddle";

export type Content = Message["content"];

export type MessageState = "pending" | "ok" | "stopped" | "error" | "stale" | "deleted";

/** A run that a chat message made. */
export interface MessageRun {
    run_id: string;
    assistant_id: string;
    /** null: the run no longer exists. */
    status: string | null;
    /** The id of its answer, which becomes a message when the run ends. */
    answer: string | null;
}

export interface RoomRun extends MessageRun {
    trigger: string | null;
}

export type Rating = "up" | "down";

export interface Feedback {
    rating: Rating | null;
    comment?: string | null;
    /** Who rated it. */
    person?: Sender;
}

export interface ChatMessage {
    id: string;
    seq: number;
    thread_id: string;
    sender: Sender;
    /** null: deleted, or an answer without one. */
    content: Content | null;
    metadata: Record<string, unknown> | null;
    reply_to: string | null;
    mentions: Sender[];
    version: number;
    state: MessageState;
    replaced_by: string | null;
    replaces: string | null;
    run_id: string | null;
    checkpoint_id: string | null;
    /** The questions of a pending message, by task. */
    interrupts: Record<string, Interrupt[]> | null;
    error: unknown;
    feedback: Feedback | Feedback[] | null;
    created_at: string;
    updated_at: string;
    runs: MessageRun[];
}

export interface Version {
    version: number;
    content: Content | null;
    metadata: Record<string, unknown> | null;
    created_at: string;
}

export interface RoomAgent {
    assistant_id: string;
    name: string;
}

export interface RoomSettings {
    default_assistant_id: string | null;
    agents: RoomAgent[];
    context: { messages: number; bytes: number };
    cascade: { limit: number };
    agents_ask: { depth: number; runs: number };
    answers: "asker" | "editors";
    presence: boolean;
}

export interface Room extends RoomSettings {
    thread_id: string;
    last_seq: number;
    people: Sender[];
    me: Sender;
    unread: number;
}

export interface Step {
    run_id: string;
    assistant_id: string;
    trigger: string | null;
    /** The answer that is made again. */
    answer: string | null;
    why: "retry" | "trigger" | "given" | "line";
    cause: string | null;
    approval: null | "limit" | "effects";
    /** Why it cannot be made again. */
    blocked: string | null;
    /** The tools that it called. */
    tools: string[];
    after: number[];
    status: "waiting" | "running" | "done" | "question" | "failed" | "skipped";
    /** The new answer equals the old one, which stays. */
    equal?: boolean;
    new_run_id: string | null;
    new_answer: string | null;
}

export type CascadeStatus =
    "running" | "waiting" | "done" | "declined" | "cancelled" | "failed" | "undone";

export interface Cascade {
    cascade_id: string;
    thread_id: string;
    message_id: string;
    version: number;
    status: CascadeStatus;
    limit: number;
    approved: number;
    reason: string | null;
    plan: Step[];
    created_at: string;
    updated_at: string;
}

/** The result of a dry run. */
export interface Plan {
    plan: Step[];
    /** The steps that go without an approval. */
    free: number;
    possible: number;
    limit: number;
}

export interface Mention {
    thread_id: string;
    created_at: string;
    message: ChatMessage;
}
