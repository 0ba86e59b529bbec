/**
 * The SDK's client without a URL: `new Client()` in a graph or a route reaches this server. The SDK
 * takes `fetch` from a global symbol, under which LangGraph's own server puts its own. This one sends
 * requests to the server's address with the pass of the run or route that they come from: the server
 * takes them for the caller's.
 */
import { AsyncLocalStorage } from "node:async_hooks";
import { request as requestTls } from "node:https";
import { Readable } from "node:stream";
import type { Fields } from "./frame.js";
import type { IncomingCall } from "./link.js";

const FETCH = Symbol.for("langgraph_api:fetch");
const URL_OF = Symbol.for("langgraph_api:url");
const HEADER = "heddle-run-token";

interface Api {
  readonly url: string;
  readonly pass?: string;
}

const calling = new AsyncLocalStorage<Api>();

/** Does something for a call of the server: requests of it are the caller's. */
export function forCaller<T>(call: IncomingCall, work: () => T): T {
  const api = call.head.api as Api | undefined;
  return api === undefined ? work() : calling.run(api, work);
}

export function installLoopback(): void {
  const global = globalThis as Record<symbol, unknown>;
  global[FETCH] = loopbackFetch;
  // Any host will do: only the path of the address is used.
  global[URL_OF] = "http://api";
}

async function loopbackFetch(input: string | URL | Request, init?: RequestInit): Promise<Response> {
  const api = calling.getStore();
  if (api === undefined) {
    throw new TypeError("a client without a URL reaches the server from a run or a route of the project; elsewhere it needs one");
  }
  const given = new Request(input, init);
  const { pathname, search } = new URL(given.url);
  const headers = new Headers(given.headers);
  if (api.pass !== undefined && !headers.has("authorization")) headers.set(HEADER, api.pass);
  const address = `${api.url.replace(/\/$/, "")}${pathname}${search}`;
  if (address.startsWith("https:")) return fetchTls(address, given, headers);
  return fetch(address, {
    method: given.method,
    headers,
    signal: given.signal,
    ...(given.body === null ? {} : { body: await given.arrayBuffer() }),
  });
}

/** The server itself told the address; its certificate names another host, which fetch() does not accept. */
async function fetchTls(address: string, given: Request, headers: Headers): Promise<Response> {
  const body = given.body === null ? undefined : Buffer.from(await given.arrayBuffer());
  const options = { method: given.method, headers: Object.fromEntries(headers), rejectUnauthorized: false, signal: given.signal };
  return new Promise((resolve, reject) => {
    const sent = requestTls(address, options, (answer) => {
      const status = answer.statusCode ?? 502;
      const isEmpty = status === 204 || status === 304;
      const shown = Object.entries(answer.headers as Fields).map(([name, value]): [string, string] => [name, String(value)]);
      resolve(new Response(isEmpty ? null : (Readable.toWeb(answer) as ReadableStream), { status, headers: shown }));
    });
    sent.on("error", reject);
    sent.end(body);
  });
}
