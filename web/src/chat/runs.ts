// The pending and running runs of a thread and the results of the latest ones: loaded when the
// thread is opened, and again on every start and end event while the page is visible. (A page in
// the background does not listen: a browser has six connections for all tabs of a server.)
import type { Run } from "@langchain/langgraph-sdk";
import { useEffect, useRef, useState } from "react";
import { client, clientThatSays, statusOf } from "@/api/client";
import { untilReached } from "@/api/connection";
import type { Receipt } from "@/api/heddle";
import { untilSignedIn } from "@/api/session";
import type { Ended } from "./runOutcome";

export interface Runs {
    /** Oldest first. */
    active: Run[];
    /** By assistant. */
    ended: ReadonlyMap<string, Ended>;
    /** The statuses of recent runs, by run id. */
    statuses: ReadonlyMap<string, string>;
}

const LOOK_BACK = 20;
const SETTLE_MS = 50;
const none: Runs = { active: [], ended: new Map(), statuses: new Map() };

const isActive = (run: Run) => run.status === "running" || run.status === "pending";

function runsOf(newestFirst: Run[]): Runs {
    const ended = new Map<string, Ended>();
    for (const run of newestFirst) {
        if (isActive(run) || ended.has(run.assistant_id)) continue;
        const { receipt } = run as Run & { receipt?: Receipt | null };
        ended.set(run.assistant_id, {
            runId: run.run_id,
            status: run.status,
            receipt: receipt ?? null,
        });
    }
    return {
        active: newestFirst.filter(isActive).reverse(),
        ended,
        statuses: new Map(newestFirst.map((run) => [run.run_id, run.status])),
    };
}

/** `onOpen`: events arrive from now on; earlier ones were missed. */
async function listen(
    threadId: string,
    signal: AbortSignal,
    onEvent: () => void,
    onOpen: () => void,
): Promise<void> {
    const ear = clientThatSays(onOpen);
    while (!signal.aborted) {
        try {
            onEvent();
            const events = ear.threads.joinStream(threadId, {
                streamMode: ["lifecycle", "state_update"],
                signal,
            });
            for await (const event of events) if (event.event) onEvent();
        } catch (error) {
            // Unreachable or disconnected: listen again when the server responds. A thread that
            // does not exist or is not accessible has no events.
            const status = statusOf(error);
            if (status === 403 || status === 404 || status === 422) return;
            if (status === 401) await untilSignedIn(signal);
        }
        await untilReached(signal).catch(() => undefined);
    }
}

/** Calls `onChange` on each start and end, including the page's own runs. */
export function useRuns(threadId: string, exists: boolean, onChange: () => void): Runs {
    const [runs, setRuns] = useState(none);
    const change = useRef(onChange);
    change.current = onChange;

    useEffect(() => {
        if (!exists) return;
        let controller: AbortController | null = null;
        let timer: ReturnType<typeof setTimeout> | undefined;
        let isUnmounted = false;
        let hasEvent = false; // an event for a thread that is not loaded yet
        let known: string | null = null;

        const look = () => {
            clearTimeout(timer);
            timer = setTimeout(() => {
                client.runs.list(threadId, { limit: LOOK_BACK }).then(
                    (list) => {
                        if (isUnmounted) return;
                        const seen = list.map((run) => `${run.run_id} ${run.status}`).join();
                        setRuns(runsOf(list));
                        // The initial load already covers the first connection.
                        if (known !== null && (hasEvent || seen !== known)) change.current();
                        known = seen;
                        hasEvent = false;
                    },
                    // the banner reports it; the next event or reconnection retries
                    () => undefined,
                );
            }, SETTLE_MS);
        };
        const onEvent = () => {
            hasEvent = true;
            look();
        };
        const follow = () => {
            controller?.abort();
            controller = null;
            if (document.visibilityState !== "visible") return;
            controller = new AbortController();
            void listen(threadId, controller.signal, onEvent, look);
        };
        follow();
        document.addEventListener("visibilitychange", follow);
        return () => {
            isUnmounted = true;
            clearTimeout(timer);
            controller?.abort();
            document.removeEventListener("visibilitychange", follow);
        };
    }, [threadId, exists]);

    return runs;
}
