// Texts of messages. Pure.
import type { Message } from "@langchain/langgraph-sdk";

type Content = Message["content"];

export function textOf(content: Content): string {
    if (typeof content === "string") return content;
    return content.flatMap((block) => (block.type === "text" ? block.text : [])).join("\n\n");
}

const TITLE = 60;

/** The default title of a conversation: the start of its first message. */
export function titleOf(content: Content): string {
    const line = textOf(content).trim().split("\n")[0]?.trim() ?? "";
    if (line.length <= TITLE) return line || "New conversation";
    const cut = line.slice(0, TITLE);
    const space = cut.lastIndexOf(" ");
    return `${space > TITLE / 2 ? cut.slice(0, space) : cut}…`;
}

/** Formats a server error as a sentence. */
export function sentence(text: string): string {
    return text.charAt(0).toUpperCase() + text.slice(1);
}
