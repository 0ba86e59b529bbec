// The one way from the page to its server: the official client, on a fetch that carries the token,
// knows when the server is gone, and keeps streams whole.
import { Client } from "@langchain/langgraph-sdk/client";
import { base, reportLost, reportReached, watchForReturn } from "./connection";
import { resuming } from "./resume";
import { isRefused, renewal, session } from "./session";

/** What the server said when it refused something. */
export class Refusal extends Error {
    readonly status: number;

    constructor(status: number, detail: string) {
        super(detail);
        this.name = "Refusal";
        this.status = status;
    }
}

/** Heddle takes issuers' tokens and API keys alike in this header. */
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
            watchForReturn();
        }
        throw error;
    }
}

/**
 * As whoever is signed in. A token that has run out is renewed, if it can be, and the request sent
 * once more.
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

/**
 * Nothing is tried twice by itself: a request that made a run and lost its answer would make
 * another.
 */
const clientOn = (fetch: typeof wholeFetch) =>
    new Client({
        apiUrl: base.replace(/\/$/, ""),
        apiKey: null,
        callerOptions: { fetch, maxRetries: 0 },
    });

export const client = clientOn(wholeFetch);

/** One that says when an answer begins: a stream tells what happens from then on. */
export const clientThatSays = (onAnswer: () => void) =>
    clientOn(async (input, init) => {
        const answer = await wholeFetch(input, init);
        if (answer.ok) onAnswer();
        return answer;
    });

export interface Ask {
    method?: "GET" | "POST" | "PATCH" | "PUT" | "DELETE";
    query?: Record<string, string | number | null | undefined>;
    body?: unknown;
    signal?: AbortSignal;
    /** The request outlives the page. */
    keepalive?: boolean;
    /** The token to ask with, null for none; by default that of whoever is signed in. */
    as?: string | null;
}

async function send(path: string, ask: Ask): Promise<Response> {
    const url = new URL(path.replace(/^\//, ""), base);
    for (const [name, value] of Object.entries(ask.query ?? {})) {
        if (value !== null && value !== undefined) url.searchParams.set(name, String(value));
    }
    const init: RequestInit = {
        method: ask.method ?? "GET",
        headers: ask.body === undefined ? {} : { "content-type": "application/json" },
        body: ask.body === undefined ? undefined : JSON.stringify(ask.body),
        signal: ask.signal,
        keepalive: ask.keepalive,
        cache: "no-store",
    };
    const response = await (ask.as === undefined
        ? tokenFetch(url, init)
        : fetchAs(ask.as, url, init));
    if (!response.ok) throw new Refusal(response.status, detailOf(await response.text()));
    return response;
}

/** For what the official client has no method, such as what is Heddle's own. */
export async function ask<T>(path: string, options: Ask = {}): Promise<T> {
    const response = await send(path, options);
    const text = await response.text();
    return (text ? JSON.parse(text) : null) as T;
}

export async function askText(path: string, options: Ask = {}): Promise<string> {
    return (await send(path, options)).text();
}

/** `{"detail": …}`, or whatever else it is. */
export function detailOf(text: string): string {
    try {
        const { detail } = JSON.parse(text) as { detail?: unknown };
        if (typeof detail === "string") return detail;
        if (detail !== undefined) return JSON.stringify(detail);
    } catch {
        // Not JSON: shown as it is.
    }
    return text.slice(0, 500) || "The server gave no reason.";
}

/** What to tell a person about anything that was thrown. */
export function reasonOf(error: unknown): string {
    if (error instanceof Refusal) return error.message;
    if (error instanceof TypeError || (error instanceof Error && error.name === "ConnectionError"))
        return "The server can't be reached.";
    if (error instanceof Error) {
        const refused = /^HTTP (\d+): ([\s\S]*)$/.exec(error.message); // of the official client
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
