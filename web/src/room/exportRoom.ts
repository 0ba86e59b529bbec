// The transcript of a room as a file: all messages, not only the loaded ones.
import { save } from "@/threads/export";
import { fileNameOf } from "@/threads/markdown";
import { titleOfRecord, type ThreadRecord } from "@/threads/records";
import { getMessages } from "./api";
import { transcriptOf } from "./text";
import type { ChatMessage } from "./types";

const PAGE = 1000;

async function allMessages(threadId: string): Promise<ChatMessage[]> {
    const all: ChatMessage[] = [];
    for (;;) {
        const after = all.at(-1)?.seq ?? 0;
        const page = await getMessages(threadId, { after, limit: PAGE, order: "asc" });
        all.push(...page);
        if (page.length < PAGE) return all;
    }
}

export async function exportRoom(record: ThreadRecord, kind: "md" | "json"): Promise<void> {
    const { thread_id } = record;
    const title = titleOfRecord(record);
    const messages = await allMessages(thread_id);
    if (kind === "md")
        return save(fileNameOf(title, "md"), "text/markdown", transcriptOf(title, messages));
    const text = JSON.stringify({ title, thread_id, messages }, null, 2);
    save(fileNameOf(title, "json"), "application/json", text);
}
