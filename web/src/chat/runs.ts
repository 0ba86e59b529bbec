// The runs of a thread that are at work or wait, whoever started them, and how the latest ended:
// read when the thread is opened, and again whenever the server tells of a beginning or an end
// while the page is looked at. (A page in the background listens to nothing: a browser has six
// connections for all tabs of a server.)
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
    /** How recent runs ended, by their id. */
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

/** `onOpen`: what happens is told from now on; what has happened meanwhile was not. */
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
            // Not reached, or cut off: listen again when the server answers. A thread that is not
            // there, or not ours, says nothing.
            const status = statusOf(error);
            if (status === 403 || status === 404 || status === 422) return;
            if (status === 401) await untilSignedIn(signal);
        }
        await untilReached(signal).catch(() => undefined);
    }
}

/** `onChange` is called for each beginning and end, also of one's own runs. */
export function useRuns(threadId: string, exists: boolean, onChange: () => void): Runs {
    const [runs, setRuns] = useState(none);
    const change = useRef(onChange);
    change.current = onChange;

    useEffect(() => {
        if (!exists) return;
        let controller: AbortController | null = null;
        let timer: ReturnType<typeof setTimeout> | undefined;
        let isGone = false;
        let isTold = false; // of something that was not looked at yet
        let known: string | null = null;

        const look = () => {
            clearTimeout(timer);
            timer = setTimeout(() => {
                client.runs.list(threadId, { limit: LOOK_BACK }).then(
                    (list) => {
                        if (isGone) return;
                        const seen = list.map((run) => `${run.run_id} ${run.status}`).join();
                        setRuns(runsOf(list));
                        // The first look is at what is being loaded anyway.
                        if (known !== null && (isTold || seen !== known)) change.current();
                        known = seen;
                        isTold = false;
                    },
                    () => undefined, // the banner says so; the next event, or the way back, looks again
                );
            }, SETTLE_MS);
        };
        const onEvent = () => {
            isTold = true;
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
            isGone = true;
            clearTimeout(timer);
            controller?.abort();
            document.removeEventListener("visibilitychange", follow);
        };
    }, [threadId, exists]);

    return runs;
}
