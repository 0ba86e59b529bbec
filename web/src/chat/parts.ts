// The parts of a message, independent of the format of its content. Pure.
import type { Message } from "@langchain/langgraph-sdk";

type Content = Message["content"];

export interface Parts {
    text: string;
    /** URLs: data:, or others that are only linked. */
    images: string[];
    /** The model's reasoning. */
    reasoning: string;
    /** Types of blocks that the page does not support. */
    others: string[];
}

/** A content block of any provider: only the members used here. */
interface Block {
    type?: string;
    text?: unknown;
    image_url?: unknown;
    url?: unknown;
    data?: unknown;
    base64?: unknown;
    mime_type?: unknown;
    mimeType?: unknown;
    thinking?: unknown;
    reasoning?: unknown;
    summary?: unknown;
}

const textual = (value: unknown): string => (typeof value === "string" ? value : "");

function imageOf(block: Block): string {
    const { image_url } = block;
    if (typeof image_url === "string") return image_url;
    if (image_url !== null && typeof image_url === "object" && "url" in image_url)
        return textual(image_url.url);
    const data = textual(block.data) || textual(block.base64);
    if (data)
        return `data:${textual(block.mime_type) || textual(block.mimeType) || "image/png"};base64,${data}`;
    return textual(block.url);
}

function thoughtOf(block: Block): string {
    const summary = Array.isArray(block.summary)
        ? (block.summary as Block[]).map((one) => textual(one.text))
        : [];
    return textual(block.thinking) || textual(block.reasoning) || summary.join("\n\n");
}

/** Tool calls are shown separately; their blocks add nothing. */
const CALLS = new Set([
    "tool_use",
    "tool_call",
    "tool_call_chunk",
    "input_json_delta",
    "function_call",
]);

/** Some libraries put plain strings among the blocks. */
function read(parts: Parts, given: Block | string) {
    const block = typeof given === "string" ? { type: "text", text: given } : given;
    const { type = "" } = block;
    if (type === "text") parts.text += (parts.text ? "\n\n" : "") + textual(block.text);
    else if (type === "image_url" || type === "image") parts.images.push(imageOf(block));
    else if (type === "thinking" || type === "reasoning") parts.reasoning += thoughtOf(block);
    else if (type && !CALLS.has(type) && type !== "redacted_thinking") parts.others.push(type);
}

export function partsOf(
    message: Pick<Message, "content"> & { additional_kwargs?: unknown },
): Parts {
    const parts: Parts = { text: "", images: [], reasoning: "", others: [] };
    const extra = message.additional_kwargs as { reasoning_content?: unknown } | undefined;
    parts.reasoning = textual(extra?.reasoning_content);
    const content = message.content as Content | null;
    if (typeof content === "string") parts.text = content;
    else for (const block of content ?? []) read(parts, block as Block | string);
    return parts;
}

export interface Call {
    id: string;
    name: string;
    /** The text itself if it is not JSON. */
    args: unknown;
    isInvalid: boolean;
}

interface RawCall {
    id?: string | null;
    name?: string | null;
    args?: unknown;
}

/** The tool calls of a message, including calls with invalid JSON arguments. */
export function callsOf(message: Message): Call[] {
    const { tool_calls, invalid_tool_calls } = message as {
        tool_calls?: RawCall[];
        invalid_tool_calls?: RawCall[];
    };
    const callOf =
        (isInvalid: boolean) =>
        (raw: RawCall, at: number): Call => ({
            id: raw.id ?? `${isInvalid ? "invalid" : "call"}-${at}`,
            name: raw.name || "tool",
            args: raw.args,
            isInvalid,
        });
    return [
        ...(tool_calls ?? []).map(callOf(false)),
        ...(invalid_tool_calls ?? []).map(callOf(true)),
    ];
}

/** The result of a tool; JSON is indented. */
export function resultText(content: Content): string {
    const { text } = partsOf({ content });
    const trimmed = text.trim();
    if (!trimmed.startsWith("{") && !trimmed.startsWith("[")) return text;
    try {
        return JSON.stringify(JSON.parse(trimmed), null, 2);
    } catch {
        return text;
    }
}

const SHORT = 80;

/** Arguments on one line: `city: "Oslo", days: 3`. */
export function shortArgs(args: unknown): string {
    if (args === null || args === undefined) return "";
    const text =
        typeof args !== "object"
            ? String(args)
            : Object.entries(args)
                  .map(([name, value]) => `${name}: ${JSON.stringify(value) ?? ""}`)
                  .join(", ");
    return text.length > SHORT ? `${text.slice(0, SHORT)}…` : text;
}

/** Nothing visible: no text, reasoning, image or tool call. */
export function isBlank(message: Message): boolean {
    const { text, images, reasoning, others } = partsOf(message);
    const isSilent = text.trim() === "" && reasoning === "";
    return isSilent && images.length + others.length + callsOf(message).length === 0;
}
