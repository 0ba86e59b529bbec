// The kinds of requests and replies. Pure.

export type Json = null | boolean | number | string | Json[] | { [member: string]: Json };
export type Members = { [member: string]: Json };

/** The delegate whose request the calling agent passes on. */
export interface Delegate {
    assistantId: string | null;
    name: string;
}

export interface Common {
    delegate: Delegate | null;
    /** Why the last reply was rejected. */
    error: string | null;
}

export type ReplyType = "accept" | "edit" | "respond" | "ignore";

/** A tool call that needs approval. */
export interface CallItem extends Common {
    kind: "call";
    /** The format of the reply: Heddle's and Agent Inbox's, or LangChain's list of decisions. */
    form: "inbox" | "decision";
    name: string;
    args: Json;
    description: string;
    replyTypes: ReplyType[];
    /** In LangChain's format a text is a reason to reject, unless "respond" is allowed. */
    rejects: boolean;
}

/** Research results to review. */
export interface ReviewItem extends Common {
    kind: "review";
    message: string;
    results: Json[];
    summary: string;
}

/** A form or a URL that an MCP server requests. */
export interface FormItem extends Common {
    kind: "form";
    server: string;
    message: string;
    /** JSON Schemas by name; null: no form. */
    fields: Record<string, Members>;
    required: string[];
    url: string | null;
}

/** The called agent is paused at a breakpoint. */
export interface PauseItem extends Common {
    kind: "pause";
    next: string[];
}

/** Any other interrupt. */
export interface OtherItem extends Common {
    kind: "other";
    text: string;
    /** Members besides the text. */
    rest: Json | undefined;
}

export type Item = CallItem | ReviewItem | FormItem | PauseItem | OtherItem;

export type Answer =
    | { type: "accept" }
    | { type: "edit"; args: Json }
    | { type: "respond"; text: string }
    | { type: "ignore" }
    | { type: "value"; value: Json };

/** One interrupt. It may contain several requests, which are answered together. */
export interface Question {
    id: string;
    items: Item[];
    /** One reply per item, in order. */
    encode(answers: Answer[]): Json;
}

export function isMembers(value: unknown): value is Members {
    return value !== null && typeof value === "object" && !Array.isArray(value);
}
