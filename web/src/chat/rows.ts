// The rows of a conversation: messages with their tool results. Pure.
import type { Message } from "@langchain/langgraph-sdk";
import { callsOf } from "./parts";
import type { Entry } from "./openThread";

export interface Row {
    entry: Entry;
    /** The results of the tool calls of this message. */
    results: Message[];
    /** The row shows the name of its agent, because the speaker changes here. */
    showsName: boolean;
    /** For a message of the user: the next one follows without an answer between them. */
    isUnanswered: boolean;
    /** For the last message of an answer: the user's message that it answers; null otherwise. */
    answers: Entry | null;
}

const noResults: Message[] = [];

const callOf = (message: Message) => (message.type === "tool" ? message.tool_call_id : null);

/** One agent's tool results by call id. */
function resultsOf(entries: Entry[]): Map<string, Message> {
    const results = new Map<string, Message>();
    for (const { chat, message } of entries) {
        const call = callOf(message);
        if (call) results.set(`${chat.assistantId} ${call}`, message);
    }
    return results;
}

const isOwn = ({ message, origin }: Entry) => message.type === "human" && !origin?.delegated;

/** A run may have several input messages: they are one turn. */
function isSameTurn(one: Entry, other: Entry): boolean {
    return one.origin === undefined || one.origin.checkpoint_id === other.origin?.checkpoint_id;
}

interface Turns {
    unanswered: Set<Entry>;
    answers: Map<Entry, Entry>;
}

/** The role of each message in its turn. */
function turnsOf(entries: Entry[]): Turns {
    const turns: Turns = { unanswered: new Set(), answers: new Map() };
    const before = new Map<string, Entry>(); // the last message of each chat
    const lastHuman = new Map<string, Entry>(); // the user's last message of each chat
    const end = (chat: string) => {
        const [last, own] = [before.get(chat), lastHuman.get(chat)];
        if (last?.message.type === "ai" && own) turns.answers.set(last, own);
    };
    for (const entry of entries) {
        const chat = entry.chat.assistantId;
        const last = before.get(chat);
        if (isOwn(entry)) {
            end(chat);
            if (last && isOwn(last) && !isSameTurn(last, entry)) turns.unanswered.add(last);
            lastHuman.set(chat, entry);
        }
        if (entry.message.type !== "remove") before.set(chat, entry);
    }
    for (const chat of before.keys()) end(chat);
    return turns;
}

export function rowsOf(entries: Entry[]): Row[] {
    const results = resultsOf(entries);
    const turns = turnsOf(entries);
    const agents = new Set(entries.map((entry) => entry.chat.assistantId));
    const shown = new Set<Message>();
    const rows: Row[] = [];
    let speaker: string | null = null;
    for (const entry of entries) {
        const { chat, message } = entry;
        if (message.type === "remove" || shown.has(message)) continue;
        const own =
            message.type === "ai"
                ? callsOf(message).flatMap(
                      (call) => results.get(`${chat.assistantId} ${call.id}`) ?? [],
                  )
                : noResults;
        for (const result of own) shown.add(result);
        const isAgent = message.type !== "human";
        rows.push({
            entry,
            results: own.length > 0 ? own : noResults,
            showsName: isAgent && speaker !== chat.assistantId,
            isUnanswered: turns.unanswered.has(entry),
            answers: turns.answers.get(entry) ?? null,
        });
        if (isAgent) speaker = chat.assistantId;
        else if (agents.size > 1) speaker = null;
    }
    return rows;
}
