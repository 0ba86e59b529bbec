/**
 * The SDK's client without a URL: `new Client()` in a graph or a route reaches this server. The SDK
 * takes `fetch` from a global symbol, which LangGraph's own server also sets. This one sends
 * requests to the server's address with the pass of the current run or route: the server treats
 * them as the caller's. Requests that went through the application's middleware return to the
 * server the same way.
 */
import { AsyncLocalStorage } from "node:async_hooks";
import { request as requestPlain, type IncomingMessage } from "node:http";
import { request as requestTls } from "node:https";
import { Readable } from "node:stream";
import type { IncomingCall } from "./link.js";

const FETCH = Symbol.for("langgraph_api:fetch");
const URL_OF = Symbol.for("langgraph_api:url");
const HEADER = "heddle-run-token";
/** Hop-by-hop headers; and no compression of a body that is only passed on. */
const HOPS = [
    "accept-encoding",
    "connection",
    "content-length",
    "expect",
    "keep-alive",
    "transfer-encoding",
    "upgrade",
    HEADER,
];

interface Api {
    readonly url: string;
    readonly pass?: string;
}

const calling = new AsyncLocalStorage<Api>();

/** Runs a function for a call of the server: its requests are the caller's. */
export function forCaller<T>(call: IncomingCall, work: () => T): T {
    const api = call.head.api as Api | undefined;
    return api === undefined ? work() : calling.run(api, work);
}

export function installLoopback(): void {
    const global = globalThis as Record<symbol, unknown>;
    global[FETCH] = loopbackFetch;
    // Any host: only the path of the URL is used.
    global[URL_OF] = "http://api";
}

function currentApi(): Api {
    const api = calling.getStore();
    if (api !== undefined) return api;
    throw new TypeError(
        "a client without a URL reaches the server from a run or a route of the project; elsewhere it needs one",
    );
}

async function loopbackFetch(input: string | URL | Request, init?: RequestInit): Promise<Response> {
    const api = currentApi();
    const given = new Request(input, init);
    const headers = new Headers(given.headers);
    headers.delete("host");
    if (api.pass !== undefined && !headers.has("authorization")) headers.set(HEADER, api.pass);
    return send(api, given, headers);
}

/** The response of a server route to a request that went through the middleware. */
export async function askServer(given: Request): Promise<Response> {
    const api = currentApi();
    const headers = new Headers(given.headers);
    for (const name of HOPS) headers.delete(name);
    if (api.pass !== undefined) headers.set(HEADER, api.pass);
    return send(api, given, headers);
}

async function send(api: Api, given: Request, headers: Headers): Promise<Response> {
    const { pathname, search } = new URL(given.url);
    const address = `${api.url.replace(/\/$/, "")}${pathname}${search}`;
    const body = given.body === null ? undefined : Buffer.from(await given.arrayBuffer());
    if (body !== undefined) headers.set("content-length", String(body.length));
    // The address comes from the server itself; its certificate names another host.
    const options = {
        method: given.method,
        headers: Object.fromEntries(headers),
        rejectUnauthorized: false,
        signal: given.signal,
    };
    const request = address.startsWith("https:") ? requestTls : requestPlain;
    return new Promise((resolve, reject) => {
        const sent = request(address, options, (answer) => resolve(responseOf(answer)));
        sent.on("error", reject);
        sent.end(body);
    });
}

function responseOf(answer: IncomingMessage): Response {
    const status = answer.statusCode ?? 502;
    const headers = new Headers();
    for (let i = 0; i + 1 < answer.rawHeaders.length; i += 2) {
        headers.append(answer.rawHeaders[i] as string, answer.rawHeaders[i + 1] as string);
    }
    for (const name of ["connection", "keep-alive", "transfer-encoding"]) headers.delete(name);
    const isEmpty = status === 204 || status === 205 || status === 304;
    if (isEmpty) answer.resume();
    return new Response(isEmpty ? null : (Readable.toWeb(answer) as ReadableStream), {
        status,
        headers,
    });
}
