// The messages of a thread: those of all chats, interleaved. Pure.
import type { Message } from "@langchain/langgraph-sdk";
import type { Origin } from "@/api/heddle";
import type { AgentChat } from "./agentChat";

/** A message with its chat and its origin. */
export interface Entry {
    key: string;
    chat: AgentChat;
    message: Message;
    origin: Origin | undefined;
}

function timeOf(entry: Entry): string {
    return entry.origin?.created_at ?? "~"; // the message that is being written is the latest
}

/**
 * Each chat is ordered; messages of several chats are interleaved by the time of their checkpoints.
 */
export function merge(chats: AgentChat[]): Entry[] {
    const lists = chats.map((chat) =>
        chat.messages.map((message, index): Entry => {
            const key = `${chat.assistantId}:${message.id ?? index}`;
            return { key, chat, message, origin: chat.originOf(message.id) };
        }),
    );
    if (lists.length <= 1) return lists[0] ?? [];
    const merged: Entry[] = [];
    const next = lists.map(() => 0);
    for (;;) {
        let first = -1;
        let earliest = "";
        lists.forEach((list, i) => {
            const entry = list[next[i]!];
            if (!entry) return;
            // A message without a time follows the one before it.
            const time = timeOf(entry);
            if (first < 0 || time < earliest) [first, earliest] = [i, time];
        });
        if (first < 0) return merged;
        merged.push(lists[first]![next[first]!++]!);
    }
}
