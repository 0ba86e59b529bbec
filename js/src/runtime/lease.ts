/** Ends a worker whose server is silent: another server may execute its runs by now. */
import type { Link } from "./link.js";

/** The exit status. */
const SILENT = 3;
const TICKS = 20;

/**
 * Counts ticks instead of comparing times: a worker that was stopped itself, or blocked by its code,
 * first reads what has arrived meanwhile. Blocked code makes no calls. Writes no log, because a
 * server that does not run may not read it.
 */
export function watchLease(link: Link, leaseMs: number): void {
    const tickMs = leaseMs / TICKS;
    let before = link.received;
    let began = performance.now();
    let silentMs = 0;
    setInterval(() => {
        const now = performance.now();
        silentMs = link.received === before ? silentMs + Math.min(now - began, 2 * tickMs) : 0;
        before = link.received;
        began = now;
        if (silentMs >= leaseMs) process.exit(SILENT);
    }, tickMs).unref();
}
