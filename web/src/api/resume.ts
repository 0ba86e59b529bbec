// Resumes broken event streams of runs.
//
// When the connection breaks during a run, this layer below the official client reconnects with
// Last-Event-ID: no event is lost and none is duplicated. When the server restarted and runs again
// from the last checkpoint (`metadata` with a higher attempt), the last `values` are repeated, so
// that output of the lost attempt disappears.
import { reportLost, reportReached, untilReached } from "./connection";
import { createEventParser, type ParsedEvent } from "./eventParser";
import { recordRunEnd } from "./runEnds";
import { isRefused, untilSignedIn } from "./session";

type Fetch = typeof fetch;

interface Follow {
    fetch: Fetch;
    url: string;
    headers: Headers;
    signal: AbortSignal;
}

interface Memory {
    lastId: string | null;
    attempt: number | null;
    values: string | null;
    isEnded: boolean;
}

/**
 * A connection without data for this long counts as broken: the server sends a heartbeat every few
 * seconds.
 */
const SILENCE_MS = 30_000;

/** Temporary statuses: the server is starting, or a proxy responds for it. */
class NotYet extends Error {}

/** `/threads/T/runs/R` of a response to a run request; null: it has none. */
function runPath(request: URL, response: Response): string | null {
    const location = response.headers.get("content-location") ?? request.pathname;
    return /\/threads\/[^/]+\/runs\/[^/]+(?=\/stream$|$)/.exec(location)?.[0] ?? null;
}

/** The text to pass on for an event. */
export function remember(memory: Memory, event: ParsedEvent): string {
    let before = "";
    if (event.id) memory.lastId = event.id;
    if (event.event === "metadata") {
        const { attempt } = parse(event.data) as { attempt?: number };
        if (
            attempt !== undefined &&
            memory.attempt !== null &&
            attempt > memory.attempt &&
            memory.values
        )
            before = `event: values\ndata: ${memory.values}\n\n`;
        memory.attempt = attempt ?? memory.attempt;
    } else if (event.event === "values") {
        memory.values = event.data.replaceAll("\n", " ");
    } else if (event.event === "end") {
        memory.isEnded = true;
        recordRunEnd(parse(event.data));
    } else if (event.event === "error") {
        memory.isEnded = true;
    }
    return before + event.text;
}

function parse(text: string): object {
    try {
        const value: unknown = JSON.parse(text);
        return value !== null && typeof value === "object" ? value : {};
    } catch {
        return {};
    }
}

export function newMemory(): Memory {
    return { lastId: null, attempt: null, values: null, isEnded: false };
}

async function pass(
    response: Response,
    follow: Follow,
    memory: Memory,
    send: (text: string) => void,
): Promise<void> {
    const parser = createEventParser();
    const decoder = new TextDecoder();
    const reader = response.body!.getReader();
    let timer: ReturnType<typeof setTimeout> | undefined;
    const leave = () => void reader.cancel().catch(() => undefined); // read() then returns done
    follow.signal.addEventListener("abort", leave);
    const listen = () => {
        clearTimeout(timer);
        timer = setTimeout(leave, SILENCE_MS);
    };
    try {
        for (;;) {
            listen();
            const { done, value } = await reader.read();
            follow.signal.throwIfAborted();
            if (done) return;
            for (const event of parser.push(decoder.decode(value, { stream: true })))
                send(remember(memory, event));
        }
    } finally {
        clearTimeout(timer);
        follow.signal.removeEventListener("abort", leave);
    }
}

/** Waits until the user has signed in again. */
async function get(follow: Follow, url: string, headers: Headers): Promise<Response> {
    for (;;) {
        const response = await follow.fetch(url, { headers, signal: follow.signal });
        if (response.status >= 500) throw new NotYet();
        if (response.status !== 401 || !isRefused.get()) return response;
        await untilSignedIn(follow.signal);
    }
}

/** Reports whether the run of a stream without an `end` event is still running. */
async function isRunning(follow: Follow): Promise<boolean> {
    const response = await get(follow, follow.url, follow.headers);
    if (!response.ok) return false;
    const { status } = (await response.json()) as { status: string };
    return status === "pending" || status === "running";
}

async function reconnect(follow: Follow, memory: Memory): Promise<Response> {
    const headers = new Headers(follow.headers);
    headers.set("last-event-id", memory.lastId ?? "-1");
    const response = await get(follow, `${follow.url}/stream`, headers);
    if (!response.ok) throw new Error(`Could not resume the stream: ${response.status}`);
    return response;
}

async function pump(first: Response, follow: Follow, send: (text: string) => void): Promise<void> {
    const memory = newMemory();
    let response: Response | null = first;
    for (;;) {
        try {
            response ??= await reconnect(follow, memory);
            reportReached();
            await pass(response, follow, memory, send);
            response = null;
            if (memory.isEnded) return;
            // Fetch the events between the last one and the end of the run, even if the run has
            // ended.
            const isOver = !(await isRunning(follow));
            response = await reconnect(follow, memory);
            if (!isOver) continue;
            await pass(response, follow, memory, send);
            return;
        } catch (error) {
            if (follow.signal.aborted || !(error instanceof TypeError || error instanceof NotYet))
                throw error;
            response = null;
            reportLost();
            await untilReached(follow.signal);
        }
    }
}

function wrap(first: Response, follow: Follow, stop: () => void): Response {
    const encoder = new TextEncoder();
    const body = new ReadableStream<Uint8Array>({
        start(controller) {
            const send = (text: string) => {
                if (text) controller.enqueue(encoder.encode(text));
            };
            pump(first, follow, send)
                .then(
                    () => controller.close(),
                    (error: unknown) => controller.error(error),
                )
                .catch(() => undefined); // the reader is gone
        },
        cancel: stop,
    });
    // No `location`: the official client must not resume the stream a second time.
    const headers = new Headers(first.headers);
    headers.delete("location");
    return new Response(body, { status: first.status, statusText: first.statusText, headers });
}

/** `fetch` whose run streams last as long as the run. */
export function resuming(base: Fetch): Fetch {
    return async (input, init) => {
        const request = new URL(input instanceof Request ? input.url : input, document.baseURI);
        const response = await base(input, init);
        const isStream = response.headers.get("content-type")?.startsWith("text/event-stream");
        const path = isStream && response.ok ? runPath(request, response) : null;
        if (!path) return response;
        const headers = new Headers(init?.headers);
        headers.delete("content-type");
        headers.delete("content-length");
        // The path may have a prefix that content-location does not contain.
        const prefix = request.pathname.slice(0, request.pathname.indexOf("/threads/"));
        const url = new URL(prefix + path.slice(path.indexOf("/threads/")), request).href;
        const left = new AbortController();
        init?.signal?.addEventListener("abort", () => left.abort(init.signal?.reason), {
            once: true,
        });
        return wrap(response, { fetch: base, url, headers, signal: left.signal }, () =>
            left.abort(),
        );
    };
}
