// A conversation as Markdown. Pure.
import type { Message } from "@langchain/langgraph-sdk";
import { textOf } from "@/chat/text";

export interface ExportedMessage {
    who: string;
    message: Message;
}

function calls(message: Message): string {
    if (message.type !== "ai") return "";
    return (message.tool_calls ?? [])
        .map(
            (call) =>
                `Calls \`${call.name}\`:\n\n\`\`\`json\n${JSON.stringify(call.args, null, 2)}\n\`\`\``,
        )
        .join("\n\n");
}

export function markdownOf(title: string, messages: ExportedMessage[]): string {
    const parts = messages.map(({ who, message }) =>
        [`## ${who}`, textOf(message.content).trim(), calls(message)].filter(Boolean).join("\n\n"),
    );
    return `${[`# ${title}`, ...parts].join("\n\n")}\n`;
}

/** A name that is valid on every file system. */
export function fileNameOf(title: string, ending: string): string {
    const plain = title
        .normalize("NFKD")
        .replace(/[^\w -]+/g, "")
        .trim()
        .replace(/\s+/g, "-")
        .slice(0, 60)
        .toLowerCase();
    return `${plain || "conversation"}.${ending}`;
}
