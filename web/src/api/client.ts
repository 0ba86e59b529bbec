// The page's only connection to its server: the official client, on a fetch that adds the token,
// detects an unreachable server, and resumes broken streams.
import { Client } from "@langchain/langgraph-sdk/client";
import { base, reportLost, reportReached, pollUntilReached } from "./connection";
import { resuming } from "./resume";
import { isRefused, renewal, session } from "./session";

/** The server's error response. */
export class Refusal extends Error {
    readonly status: number;

    constructor(status: number, detail: string) {
        super(detail);
        this.name = "Refusal";
        this.status = status;
    }
}

/** Heddle accepts issuers' tokens and API keys in this header. */
async function fetchAs(
    token: string | null,
    input: RequestInfo | URL,
    init?: RequestInit,
): Promise<Response> {
    const headers = new Headers(init?.headers);
    if (token) headers.set("authorization", `Bearer ${token}`);
    try {
        const response = await fetch(input, { ...init, headers, credentials: "same-origin" });
        reportReached();
        return response;
    } catch (error) {
        if (error instanceof TypeError) {
            reportLost();
            pollUntilReached();
        }
        throw error;
    }
}

/**
 * Sends the request with the session's token. Renews an expired token if possible and sends the
 * request once more.
 */
const tokenFetch: typeof fetch = async (input, init) => {
    const { token } = session.get();
    const response = await fetchAs(token, input, init);
    if (response.status !== 401) return response;
    if (token && (await renewal.renew(token))) return fetchAs(session.get().token, input, init);
    if (session.get().token === token) isRefused.set(true);
    return response;
};

const wholeFetch = resuming(tokenFetch);

/** No automatic retries: a retry of a request that created a run would create a second run. */
const clientOn = (fetch: typeof wholeFetch) =>
    new Client({
        apiUrl: base.replace(/\/$/, ""),
        apiKey: null,
        callerOptions: { fetch, maxRetries: 0 },
    });

export const client = clientOn(wholeFetch);

/** Reports when a response begins: its stream covers events from then on. */
export const clientThatSays = (onAnswer: () => void) =>
    clientOn(async (input, init) => {
        const answer = await wholeFetch(input, init);
        if (answer.ok) onAnswer();
        return answer;
    });

export interface RequestOptions {
    method?: "GET" | "POST" | "PATCH" | "PUT" | "DELETE";
    query?: Record<string, string | number | null | undefined>;
    body?: unknown;
    signal?: AbortSignal;
    /** The request continues when the page closes. */
    keepalive?: boolean;
    /** The token of the request, null for none; by default the session's token. */
    as?: string | null;
}

async function send(path: string, options: RequestOptions): Promise<Response> {
    const url = new URL(path.replace(/^\//, ""), base);
    for (const [name, value] of Object.entries(options.query ?? {})) {
        if (value !== null && value !== undefined) url.searchParams.set(name, String(value));
    }
    const init: RequestInit = {
        method: options.method ?? "GET",
        headers: options.body === undefined ? {} : { "content-type": "application/json" },
        body: options.body === undefined ? undefined : JSON.stringify(options.body),
        signal: options.signal,
        keepalive: options.keepalive,
        cache: "no-store",
    };
    const response = await (options.as === undefined
        ? tokenFetch(url, init)
        : fetchAs(options.as, url, init));
    if (!response.ok) throw new Refusal(response.status, detailOf(await response.text()));
    return response;
}

/** For endpoints that the official client has no method for. */
export async function apiRequest<T>(path: string, options: RequestOptions = {}): Promise<T> {
    const response = await send(path, options);
    const text = await response.text();
    return (text ? JSON.parse(text) : null) as T;
}

export async function apiText(path: string, options: RequestOptions = {}): Promise<string> {
    return (await send(path, options)).text();
}

/** `{"detail": …}`, or any other body. */
export function detailOf(text: string): string {
    try {
        const { detail } = JSON.parse(text) as { detail?: unknown };
        if (typeof detail === "string") return detail;
        if (detail !== undefined) return JSON.stringify(detail);
    } catch {
        // Not JSON: shown as text.
    }
    return text.slice(0, 500) || "The server returned no details.";
}

/** The text to show for any thrown value. */
export function reasonOf(error: unknown): string {
    if (error instanceof Refusal) return error.message;
    if (error instanceof TypeError || (error instanceof Error && error.name === "ConnectionError"))
        return "The server can't be reached.";
    if (error instanceof Error) {
        // thrown by the official client
        const refused = /^HTTP (\d+): ([\s\S]*)$/.exec(error.message);
        return refused ? detailOf(refused[2] ?? "") : error.message;
    }
    return typeof error === "string" ? error : "Something went wrong.";
}

export function statusOf(error: unknown): number | null {
    if (error instanceof Refusal) return error.status;
    if (
        error !== null &&
        typeof error === "object" &&
        "status" in error &&
        typeof error.status === "number"
    )
        return error.status;
    return null;
}
