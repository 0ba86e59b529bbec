/** A thread beside the event loop, in development mode: reports the code that blocks the loop. */
import { writeSync } from "node:fs";
import { Session, type Debugger } from "node:inspector";
import { isMainThread, Worker, workerData } from "node:worker_threads";

const BEAT_MS = 500;
const BLOCKED_MS = 2000;
const FRAMES = 5;

/** Starts the thread. Neither the thread nor its heartbeat keeps the process alive. */
export function startWatchdog(): void {
    const beats = new Int32Array(new SharedArrayBuffer(4));
    const thread = new Worker(new URL(import.meta.url), { workerData: beats, execArgv: [] });
    thread.on("error", (error) => console.error("the watchdog ended:", error.message));
    thread.unref();
    setInterval(() => Atomics.add(beats, 0, 1), BEAT_MS / 2).unref();
}

/** In the thread: checks that the heartbeats continue. */
function watch(beats: Int32Array): void {
    let last = -1;
    let since = performance.now();
    let hasTold = false;
    setInterval(() => {
        const now = Atomics.load(beats, 0);
        if (now !== last) {
            last = now;
            since = performance.now();
            hasTold = false;
        } else if (!hasTold && performance.now() - since > BLOCKED_MS) {
            hasTold = true;
            tellWhere();
        }
    }, BEAT_MS);
}

/** Pauses the main thread for a moment to read its stack. */
function tellWhere(): void {
    const scripts = new Map<string, string>();
    const session = new Session();
    session.connectToMainThread();
    session.on("Debugger.scriptParsed", ({ params }) => scripts.set(params.scriptId, params.url));
    session.on("Debugger.paused", ({ params }) => {
        const places = params.callFrames
            .map((frame) => placeOf(frame, scripts))
            .filter((place) => place !== undefined);
        const where = places.slice(0, FRAMES).map((place) => `    at ${place}\n`);
        // The blocked main thread cannot print for this one.
        writeSync(
            2,
            `the event loop is blocked: every run of this worker waits. Make the work async\n${where.join("")}`,
        );
        session.post("Debugger.resume", () => session.disconnect());
    });
    session.post("Debugger.enable");
    session.post("Debugger.pause");
}

/**
 * Functions of the user's files; their lines refer to the compiled code, so only names are
 * reported.
 */
function placeOf(
    { functionName, location }: Debugger.CallFrame,
    scripts: ReadonlyMap<string, string>,
): string | undefined {
    const url = (scripts.get(location.scriptId) ?? "").replace(/\?.*$/, "");
    if (!url.startsWith("file://") || url.includes("/node_modules/")) return undefined;
    return `${functionName || "<anonymous>"} (${decodeURIComponent(url.slice("file://".length))})`;
}

if (!isMainThread && workerData instanceof Int32Array) watch(workerData);
