// Records of threads without their messages: title, role, status. Loaded without values, so that
// lists stay small however long the conversations are.
import type { ThreadStatus } from "@langchain/langgraph-sdk";
import { useEffect, useSyncExternalStore } from "react";
import { apiRequest } from "@/api/client";
import { threadPath } from "@/api/heddle";
import { createStore, useStore } from "@/api/store";
import { onOtherPerson } from "@/signin/identity";
import { titleOf } from "@/chat/text";
import { noteThreadChange, threadChanges } from "./changes";

export type Role = "owner" | "editor" | "viewer";

export interface ThreadRecord {
    thread_id: string;
    created_at: string;
    updated_at: string;
    status: ThreadStatus;
    /** Interrupts by task. A stopped thread is interrupted without any. */
    interrupts?: Record<string, unknown[]>;
    metadata: { title?: string; assistant_id?: string; graph_id?: string; [name: string]: unknown };
    /** Only on servers with sign-in. */
    role?: Role;
    /** The start of its first human message; null: none. */
    label?: string | null;
    /** Messages that the user has not read; only of rooms. */
    unread?: number;
}

export interface Read {
    record: ThreadRecord | null;
    /** Why it could not be loaded; null: loaded, or loading. */
    error: unknown;
    isLoading: boolean;
}

const SELECT = [
    "thread_id",
    "created_at",
    "updated_at",
    "status",
    "interrupts",
    "metadata",
    "role",
    "label",
    "unread",
];
const unread: Read = { record: null, error: null, isLoading: true };

const reads = createStore<ReadonlyMap<string, Read>>(new Map());

// Another user must not see this user's records.
onOtherPerson(() => reads.set(new Map()));

interface Search {
    text?: string;
    ids?: string[];
    limit: number;
    offset?: number;
    signal?: AbortSignal;
}

/** Newest first. */
export function searchThreads({ signal, ...search }: Search): Promise<ThreadRecord[]> {
    const body = { ...search, select: SELECT, sort_by: "updated_at", sort_order: "desc" };
    return apiRequest("/threads/search", { method: "POST", body, signal });
}

function put(threadId: string, change: (before: Read) => Read) {
    reads.update((before) => new Map(before).set(threadId, change(before.get(threadId) ?? unread)));
}

export async function loadRecord(threadId: string): Promise<void> {
    put(threadId, (before) => ({ ...before, isLoading: true }));
    try {
        const [record = null] = await searchThreads({ ids: [threadId], limit: 1 });
        put(threadId, () => ({ record, error: null, isLoading: false }));
    } catch (error) {
        put(threadId, (before) => ({ ...before, error, isLoading: false }));
    }
}

/** The record of a thread, loaded now and whenever threads change. */
export function useRecord(threadId: string, exists: boolean): Read {
    const changes = useStore(threadChanges);
    useEffect(() => {
        if (exists) void loadRecord(threadId);
    }, [threadId, exists, changes]);
    return useSyncExternalStore(reads.subscribe, () => reads.get().get(threadId) ?? unread);
}

/**
 * The user's role in a thread whose record is loaded elsewhere; undefined: unknown, or full access.
 */
export function useRole(threadId: string): Role | undefined {
    return useSyncExternalStore(reads.subscribe, () => reads.get().get(threadId)?.record?.role);
}

export function titleOfRecord(record: ThreadRecord | null): string {
    if (record?.metadata.title) return record.metadata.title;
    return record?.label ? titleOf(record.label) : "Untitled conversation";
}

/** Shown at once; reverted if the server rejects it. */
export async function rename(record: ThreadRecord, title: string): Promise<void> {
    const threadId = record.thread_id;
    const renamed = { ...record, metadata: { ...record.metadata, title } };
    put(threadId, (before) => ({ ...before, record: renamed }));
    try {
        await apiRequest(threadPath(threadId), {
            method: "PATCH",
            body: { metadata: { title } },
        });
    } catch (error) {
        put(threadId, (before) => ({ ...before, record }));
        throw error;
    }
    noteThreadChange();
}
