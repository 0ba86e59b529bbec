// The list of conversations: the pages loaded so far for the search text, newest first.
import { createStore, useStore } from "@/api/store";
import { onOtherPerson } from "@/signin/identity";
import { threadChanges } from "./changes";
import { searchThreads, type ThreadRecord } from "./records";

export interface ThreadsList {
    text: string;
    threads: ThreadRecord[];
    /** More threads exist than are loaded. */
    hasMore: boolean;
    /**
     * "first": nothing is loaded yet; "more": the next page is loading; "again": the loaded pages
     * are reloading.
     */
    loading: "first" | "more" | "again" | null;
    error: unknown;
}

const PAGE = 30;
const MOST = 1000;
const start: ThreadsList = { text: "", threads: [], hasMore: false, loading: "first", error: null };
const list = createStore<ThreadsList>(start);
let pending: AbortController | null = null;

export const useThreadsList = () => useStore(list);

async function load(loading: NonNullable<ThreadsList["loading"]>, offset: number, limit: number) {
    pending?.abort();
    const { signal } = (pending = new AbortController());
    const { text } = list.get();
    list.update((before) => ({ ...before, loading, error: null }));
    try {
        const found = await searchThreads({ limit, offset, signal, ...(text ? { text } : {}) });
        if (signal.aborted) return;
        list.update((before) => {
            const known = new Set(found.map((thread) => thread.thread_id));
            // A thread that moved to the top pushes the others down: none is shown twice.
            const kept = before.threads
                .slice(0, offset)
                .filter((thread) => !known.has(thread.thread_id));
            return {
                ...before,
                threads: [...kept, ...found],
                hasMore: found.length === limit,
                loading: null,
            };
        });
    } catch (error) {
        if (!signal.aborted) list.update((before) => ({ ...before, loading: null, error }));
    }
}

export function loadMore() {
    const { loading, hasMore, threads } = list.get();
    if (hasMore && loading === null && threads.length < MOST)
        void load("more", threads.length, PAGE);
}

/** Reloads the shown pages. */
export function refreshList() {
    const { threads, loading } = list.get();
    if (loading === "first" && pending) return;
    void load(
        threads.length > 0 ? "again" : "first",
        0,
        Math.min(Math.max(PAGE, threads.length), MOST),
    );
}

export function searchList(text: string) {
    if (text === list.get().text) return;
    list.set({ ...start, text });
    void load("first", 0, PAGE);
}

threadChanges.subscribe(refreshList);

// Another user must not see this user's list.
onOtherPerson(() => {
    pending?.abort();
    pending = null;
    list.set(start);
});
