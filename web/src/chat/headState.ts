// The state at the shown head of one agent's chat, and where each of its messages came from.
import type { ThreadState } from "@langchain/langgraph-sdk";
import { useCallback, useEffect, useMemo, useRef, useState } from "react";
import { statusOf } from "@/api/client";
import { untilReached } from "@/api/connection";
import { getAgents, getOrigins, getState, type Origin, type State } from "@/api/heddle";

export interface HeadState {
    /** null: nothing was said here yet, or it is not loaded. */
    state: ThreadState<State> | null;
    /** The head that `state` was read for; null: the end of the chat. */
    at: string | null;
    /**
     * Of every message that was read so far: while a run begins, what is shown may be ahead of what
     * is read.
     */
    origins: ReadonlyMap<string, Origin>;
    /** The end of the chat when it was read last. */
    latest: string | null;
    isLoading: boolean;
    error: unknown;
    /** Reads again what is shown by then. */
    reload(): Promise<ThreadState<State> | null>;
}

type Read = Omit<HeadState, "reload">;

const nothing: ReadonlyMap<string, Origin> = new Map();
const empty: Read = {
    state: null,
    at: null,
    origins: nothing,
    latest: null,
    isLoading: false,
    error: null,
};

interface Where {
    threadId: string;
    assistantId: string;
    head: string | null;
}

async function findEnd(
    { threadId, assistantId }: Where,
    signal: AbortSignal,
): Promise<string | null> {
    const agents = await getAgents(threadId, signal);
    return agents.find((agent) => agent.assistant_id === assistantId)?.head_checkpoint_id ?? null;
}

async function readOnce(where: Where, signal: AbortSignal) {
    const { threadId, assistantId, head } = where;
    const at = { assistantId, checkpointId: head, signal };
    try {
        const [state, origins, end] = await Promise.all([
            getState(threadId, at),
            getOrigins(threadId, at),
            head === null ? null : findEnd(where, signal),
        ]);
        const id = state.checkpoint?.checkpoint_id ?? null;
        return {
            state: id ? state : null,
            origins: origins.messages,
            latest: head === null ? id : end,
        };
    } catch (error) {
        // The agent was never asked in this thread.
        if (statusOf(error) === 404 && head === null)
            return { state: null, origins: [], latest: null };
        throw error;
    }
}

/** A server that can't be reached is waited for: what is on the screen stays there. */
async function read(where: Where, signal: AbortSignal) {
    for (;;) {
        try {
            return await readOnce(where, signal);
        } catch (error) {
            if (signal.aborted || !(error instanceof TypeError)) throw error;
            await untilReached(signal);
        }
    }
}

function withMore(
    before: ReadonlyMap<string, Origin>,
    list: Origin[],
): ReadonlyMap<string, Origin> {
    const all = new Map(before);
    for (const origin of list) all.set(origin.id, origin);
    return all;
}

/** `head` null: the end of the chat, wherever it is by then. */
export function useHeadState(
    threadId: string,
    assistantId: string,
    exists: boolean,
    head: string | null,
): HeadState {
    const [now, setNow] = useState<Read>({ ...empty, isLoading: exists });
    const asked = useRef<AbortController | null>(null);
    const last = useRef<Promise<ThreadState<State> | null> | null>(null);
    // The hook below reloads with the function that it was given when a run began: what is shown by
    // then counts.
    const where = useRef<Where>({ threadId, assistantId, head });
    where.current = { threadId, assistantId, head };

    const readAgain = useCallback(async (controller: AbortController) => {
        const { head } = where.current;
        setNow((before) => (before.isLoading ? before : { ...before, isLoading: true }));
        try {
            const { state, origins, latest } = await read(where.current, controller.signal);
            if (controller.signal.aborted) return null;
            setNow((before) => ({
                state,
                at: head,
                origins: withMore(before.origins, origins),
                latest,
                isLoading: false,
                error: null,
            }));
            return state;
        } catch (error) {
            if (!controller.signal.aborted)
                setNow((before) => ({ ...before, isLoading: false, error }));
            return null;
        }
    }, []);

    const reload = useCallback(async () => {
        asked.current?.abort();
        const controller = (asked.current = new AbortController());
        const own = (last.current = readAgain(controller));
        const state = await own;
        // Another read took its place: its answer is this one's too.
        return controller.signal.aborted && last.current !== own ? last.current : state;
    }, [readAgain]);

    useEffect(() => {
        if (exists) void reload();
        return () => asked.current?.abort();
    }, [exists, threadId, assistantId, head, reload]);

    return useMemo(() => ({ ...now, reload }), [now, reload]);
}
