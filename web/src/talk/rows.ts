// The rows of a conversation: messages with what belongs to them. Pure.
import type { Message } from "@langchain/langgraph-sdk";
import { callsOf } from "./parts";
import type { Entry } from "./room";

export interface Row {
    entry: Entry;
    /** What the tools said that this message calls. */
    results: Message[];
    /** Whoever reads on does not know yet who speaks. */
    showsName: boolean;
}

const noResults: Message[] = [];

const callOf = (message: Message) => (message.type === "tool" ? message.tool_call_id : null);

/** Results by the call that they answer, of one agent. */
function resultsOf(entries: Entry[]): Map<string, Message> {
    const results = new Map<string, Message>();
    for (const { line, message } of entries) {
        const call = callOf(message);
        if (call) results.set(`${line.assistantId} ${call}`, message);
    }
    return results;
}

export function rowsOf(entries: Entry[]): Row[] {
    const results = resultsOf(entries);
    const agents = new Set(entries.map((entry) => entry.line.assistantId));
    const shown = new Set<Message>();
    const rows: Row[] = [];
    let speaker: string | null = null;
    for (const entry of entries) {
        const { line, message } = entry;
        if (message.type === "remove" || shown.has(message)) continue;
        const own =
            message.type === "ai"
                ? callsOf(message).flatMap(
                      (call) => results.get(`${line.assistantId} ${call.id}`) ?? [],
                  )
                : noResults;
        for (const result of own) shown.add(result);
        const isAgent = message.type !== "human";
        rows.push({
            entry,
            results: own.length > 0 ? own : noResults,
            showsName: isAgent && speaker !== line.assistantId,
        });
        if (isAgent) speaker = line.assistantId;
        else if (agents.size > 1) speaker = null;
    }
    return rows;
}
