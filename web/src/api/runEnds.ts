// The results of the latest runs, from their streams: the official hook does not pass `end` events
// on.
import type { Receipt } from "./heddle";

export interface RunEnd {
    run_id: string;
    status: string;
    /** The receipt of a stopped run. */
    receipt: Receipt | null;
}

const KEPT = 50;
const ends = new Map<string, RunEnd>();

export function recordRunEnd(data: object) {
    const { run_id, status, receipt } = data as Partial<RunEnd>;
    if (typeof run_id !== "string") return;
    ends.set(run_id, { run_id, status: status ?? "", receipt: receipt ?? null });
    const [oldest] = ends.keys();
    if (ends.size > KEPT && oldest !== undefined) ends.delete(oldest);
}

export const runEndOf = (runId: string | null): RunEnd | null =>
    runId === null ? null : (ends.get(runId) ?? null);
