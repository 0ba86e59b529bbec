// Exports the shown messages as a file.
import { getAssistants, nameOf } from "@/api/assistants";
import type { Entry } from "@/chat/openThread";
import { otherSender } from "@/room/me";
import { fileNameOf, markdownOf } from "./markdown";
import { titleOfRecord, type ThreadRecord } from "./records";

function authorOf({ chat, message, origin }: Entry): string {
    if (message.type === "human") return otherSender(origin?.sender)?.name || "You";
    if (message.type === "tool") return `Result of ${message.name ?? "a tool"}`;
    return nameOf(getAssistants().find((one) => one.assistant_id === chat.assistantId));
}

/** Offers a text as a download. */
export function save(name: string, type: string, text: string) {
    const url = URL.createObjectURL(new Blob([text], { type }));
    const link = document.createElement("a");
    link.href = url;
    link.download = name;
    link.click();
    setTimeout(() => URL.revokeObjectURL(url), 10_000);
}

export function exportThread(record: ThreadRecord, entries: Entry[], kind: "md" | "json") {
    const title = titleOfRecord(record);
    const name = fileNameOf(title, kind);
    if (kind === "md") {
        const messages = entries.map((entry) => ({ who: authorOf(entry), message: entry.message }));
        save(name, "text/markdown", markdownOf(title, messages));
        return;
    }
    const messages = entries.map(({ chat, message }) => ({
        assistant_id: chat.assistantId,
        ...message,
    }));
    save(
        name,
        "application/json",
        JSON.stringify({ title, thread_id: record.thread_id, messages }, null, 2),
    );
}
