// The kinds of questions and answers. Pure.

export type Json = null | boolean | number | string | Json[] | { [member: string]: Json };
export type Members = { [member: string]: Json };

/** The delegate that asks through the agent that called it. */
export interface Delegate {
    assistantId: string | null;
    name: string;
}

export interface Common {
    delegate: Delegate | null;
    /** Why the last answer was not taken. */
    error: string | null;
}

export type Way = "accept" | "edit" | "respond" | "ignore";

/** A call of a tool that waits for approval. */
export interface CallItem extends Common {
    kind: "call";
    /**
     * Whose form the answer has: Heddle's and the agent inbox's, or the list of decisions of
     * LangChain.
     */
    form: "inbox" | "decision";
    name: string;
    args: Json;
    description: string;
    ways: Way[];
    /** In LangChain's form a text is a reason to reject, unless "respond" is allowed. */
    rejects: boolean;
}

/** Results of a round of research. */
export interface ReviewItem extends Common {
    kind: "review";
    message: string;
    results: Json[];
    summary: string;
}

/** A form that an MCP server wants to have filled in, or an address that it wants to be visited. */
export interface FormItem extends Common {
    kind: "form";
    server: string;
    message: string;
    /** JSON Schemas by name; null: nothing to fill in. */
    fields: Record<string, Members>;
    required: string[];
    url: string | null;
}

/** The agent that was asked has stopped at a breakpoint. */
export interface PauseItem extends Common {
    kind: "pause";
    next: string[];
}

/** Anything else. */
export interface OtherItem extends Common {
    kind: "other";
    text: string;
    /** What is not said by the text. */
    rest: Json | undefined;
}

export type Item = CallItem | ReviewItem | FormItem | PauseItem | OtherItem;

export type Answer =
    | { way: "accept" }
    | { way: "edit"; args: Json }
    | { way: "respond"; text: string }
    | { way: "ignore" }
    | { way: "value"; value: Json };

/** One interrupt. It may ask several things, which are answered together. */
export interface Question {
    id: string;
    items: Item[];
    /** One answer for each item, in their order. */
    encode(answers: Answer[]): Json;
}

export function isMembers(value: unknown): value is Members {
    return value !== null && typeof value === "object" && !Array.isArray(value);
}
