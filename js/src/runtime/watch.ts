/** Watches the project's files and detects a blocked event loop. */
import { readdirSync, statSync } from "node:fs";
import { join } from "node:path";

const POLL_MS = 500;
/** The maximum share of time spent scanning. */
const SHARE = 20;
const MAX_FILES = 10_000;
const SOURCE = /\.([cm]?[jt]sx?|json)$|^\.env$/;
const BEAT_MS = 500;
const BLOCKED_MS = 2000;

/** The sources below a folder with their modification times. */
export function look(folder: string): Map<string, number> {
    const times = new Map<string, number>();
    const folders = [folder];
    for (let at = folders.pop(); at !== undefined && times.size < MAX_FILES; at = folders.pop()) {
        for (const entry of entriesOf(at)) {
            const path = join(at, entry.name);
            if (entry.isDirectory()) {
                if (entry.name !== "node_modules" && !entry.name.startsWith("."))
                    folders.push(path);
            } else if (SOURCE.test(entry.name)) {
                times.set(path, timeOf(path));
            }
        }
    }
    return times;
}

function entriesOf(folder: string) {
    try {
        return readdirSync(folder, { withFileTypes: true });
    } catch {
        return []; // deleted meanwhile
    }
}

function timeOf(path: string): number {
    return statSync(path, { throwIfNoEntry: false })?.mtimeMs ?? 0;
}

/** Files that were changed, added or removed. */
export function changes(
    before: ReadonlyMap<string, number>,
    after: ReadonlyMap<string, number>,
): string[] {
    const paths = new Set([...before.keys(), ...after.keys()]);
    return [...paths].filter((path) => before.get(path) !== after.get(path)).sort();
}

/** Calls back once, when a file below the folder has changed. Does not keep the process alive. */
export function onChange(
    folder: string,
    before: ReadonlyMap<string, number>,
    call: (files: string[]) => void,
): void {
    const started = performance.now();
    const found = changes(before, look(folder));
    if (found.length > 0) return call(found);
    const pause = Math.max(POLL_MS, (performance.now() - started) * SHARE);
    setTimeout(() => onChange(folder, before, call), pause).unref();
}

/** Reports code that blocked the event loop, which delays every run of the worker. */
export function watchLoop(log: (text: string) => void): void {
    let last = performance.now();
    setInterval(() => {
        const blocked = performance.now() - last - BEAT_MS;
        last = performance.now();
        if (blocked > BLOCKED_MS) {
            log(
                `the event loop was blocked for ${(blocked / 1000).toFixed(1)} s: every run of this worker waited. Make the work async`,
            );
        }
    }, BEAT_MS).unref();
}
