// Texts of chat messages. Pure.
import { partsOf } from "@/chat/parts";
import type { ChatMessage, Feedback, Rating, Sender } from "./types";

export const plainText = ({ content }: Pick<ChatMessage, "content">): string =>
    content === null ? "" : partsOf({ content }).text;

const SHORT = 120;
/** Of Markdown: lists, headings, quotations, emphasis. */
const MARKS = /^\s*(?:[-+*]|#+|>|\d+\.)\s+|\*\*|`/gm;

/** One line of a message, for a quotation. */
export function excerptOf(message: Pick<ChatMessage, "content" | "state">): string {
    if (message.state === "deleted") return "deleted message";
    const text = plainText(message).replace(MARKS, "").trim().replace(/\s+/g, " ");
    if (text === "") return message.content === null ? "no text" : "attachment";
    return text.length > SHORT ? `${text.slice(0, SHORT)}…` : text;
}

/** The reason in an error of any shape. */
export function reasonOfError(error: unknown): string {
    if (typeof error === "string") return error;
    if (error === null || typeof error !== "object") return "";
    const { message, detail, error: inner } = error as Record<string, unknown>;
    return [message, detail, inner].find((one): one is string => typeof one === "string") ?? "";
}

const listOf = (feedback: ChatMessage["feedback"]): Feedback[] =>
    feedback === null ? [] : Array.isArray(feedback) ? feedback : [feedback];

/** The rating of one person. */
export function ratingOf({ feedback }: ChatMessage, me: Sender): Rating | null {
    const own = listOf(feedback).find((one) => !one.person || one.person.id === me.id);
    return own?.rating ?? null;
}

/** How many others gave each rating. */
export function countRatings({ feedback }: ChatMessage): Record<Rating, number> {
    const all = listOf(feedback);
    const count = (rating: Rating) => all.filter((one) => one.rating === rating).length;
    return { up: count("up"), down: count("down") };
}

/** A room as Markdown. */
export function transcriptOf(title: string, messages: readonly ChatMessage[]): string {
    const parts = messages
        .filter(({ state }) => state !== "deleted" && state !== "stale")
        .map((message) => {
            const time = message.created_at.slice(0, 16).replace("T", " ");
            const text = plainText(message).trim() || `(${excerptOf(message)})`;
            return `## ${message.sender.name || message.sender.id} · ${time}\n\n${text}`;
        });
    return `${[`# ${title}`, ...parts].join("\n\n")}\n`;
}
