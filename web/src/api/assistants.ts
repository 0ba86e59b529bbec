// The assistants of this server, loaded once and again when they change.
import type { Assistant } from "@langchain/langgraph-sdk";
import { client } from "./client";
import { createStore, useStore } from "./store";

export interface Assistants {
    list: Assistant[];
    isLoading: boolean;
    error: unknown;
}

const LIMIT = 1000;
const store = createStore<Assistants>({ list: [], isLoading: true, error: null });

export async function loadAssistants(): Promise<void> {
    try {
        const list = await client.assistants.search({
            limit: LIMIT,
            sortBy: "created_at",
            sortOrder: "asc",
        });
        store.set({ list, isLoading: false, error: null });
    } catch (error) {
        store.update((before) => ({ ...before, isLoading: false, error }));
    }
}

export const useAssistants = () => useStore(store);

export const getAssistants = () => store.get().list;

/** The display name. Conversations outlive the agents that took part in them. */
export function nameOf(assistant: Assistant | undefined): string {
    if (assistant) return assistant.name || assistant.graph_id;
    return store.get().list.length > 0 ? "deleted agent" : "agent";
}
