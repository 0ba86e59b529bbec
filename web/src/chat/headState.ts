// The state at the shown head of one agent, and the origin of each of its messages.
import type { ThreadState } from "@langchain/langgraph-sdk";
import { useCallback, useEffect, useMemo, useRef, useState } from "react";
import { statusOf } from "@/api/client";
import { untilReached } from "@/api/connection";
import { getAgents, getOrigins, getState, type Origin, type State } from "@/api/heddle";

export interface HeadState {
    /** null: no messages yet, or not loaded. */
    state: ThreadState<State> | null;
    /** The head of `state`; null: the latest checkpoint. */
    at: string | null;
    /**
     * The origins of all messages read so far: when a run starts, the stream may be ahead of the
     * loaded state.
     */
    origins: ReadonlyMap<string, Origin>;
    /** The latest checkpoint at the last read. */
    latest: string | null;
    isLoading: boolean;
    error: unknown;
    /** Reloads the shown head. */
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
        // The agent has no state in this thread.
        if (statusOf(error) === 404 && head === null)
            return { state: null, origins: [], latest: null };
        throw error;
    }
}

/** Waits for an unreachable server: the loaded state stays visible. */
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

/** `head` null: the latest checkpoint at the time of reading. */
export function useHeadState(
    threadId: string,
    assistantId: string,
    exists: boolean,
    head: string | null,
): HeadState {
    const [now, setNow] = useState<Read>({ ...empty, isLoading: exists });
    const pending = useRef<AbortController | null>(null);
    const last = useRef<Promise<ThreadState<State> | null> | null>(null);
    // The hook reloads with the function it had when a run started: read the head that is shown
    // now.
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
        pending.current?.abort();
        const controller = (pending.current = new AbortController());
        const own = (last.current = readAgain(controller));
        const state = await own;
        // A newer read replaced this one: return its result.
        return controller.signal.aborted && last.current !== own ? last.current : state;
    }, [readAgain]);

    useEffect(() => {
        if (exists) void reload();
        return () => pending.current?.abort();
    }, [exists, threadId, assistantId, head, reload]);

    return useMemo(() => ({ ...now, reload }), [now, reload]);
}
