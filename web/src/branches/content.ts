// Contents of messages while they are edited. Pure.
import type { Content } from "@/chat/agentChat";

/**
 * The same content with another text: it replaces all text parts, at the position of the first;
 * other parts stay.
 */
export function withText(content: Content, text: string): Content {
    if (typeof content === "string") return text;
    const first = content.findIndex((block) => block.type === "text");
    const rest = content.filter((block) => block.type !== "text");
    if (!text.trim()) return rest;
    if (first < 0) return [...rest, { type: "text", text }];
    const before = content.slice(0, first).filter((block) => block.type !== "text");
    return [...before, { type: "text", text }, ...rest.slice(before.length)];
}
