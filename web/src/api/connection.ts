// Tracks whether the server is reachable. Requests and streams report; the banner shows it.
import { createStore } from "./store";

export type Connection = "online" | "lost";

export const connection = createStore<Connection>("online");

export function reportLost() {
    connection.set("lost");
}

export function reportReached() {
    connection.set("online");
}

/** Resolves when the server answers again; rejects when `signal` aborts. */
export async function untilReached(signal?: AbortSignal): Promise<void> {
    for (let wait = 250; ; wait = Math.min(wait * 2, 4000)) {
        await pause(wait, signal);
        try {
            const response = await fetch(new URL("ok", base), { cache: "no-store", signal });
            if (response.ok) {
                reportReached();
                return;
            }
        } catch (error) {
            if (signal?.aborted) throw error;
        }
    }
}

let watch: Promise<void> | null = null;

/** Polls until the server is reachable again. */
export function pollUntilReached() {
    watch ??= untilReached().finally(() => {
        watch = null;
    });
}

/** The server that served the page. */
export const base = new URL(".", document.baseURI).href;

function pause(ms: number, signal?: AbortSignal): Promise<void> {
    return new Promise((resolve, reject) => {
        const timer = setTimeout(done, ms);
        function done() {
            clearTimeout(timer);
            window.removeEventListener("online", done);
            signal?.removeEventListener("abort", done);
            if (signal?.aborted) reject(new DOMException("stopped", "AbortError"));
            else resolve();
        }
        window.addEventListener("online", done);
        signal?.addEventListener("abort", done);
    });
}
