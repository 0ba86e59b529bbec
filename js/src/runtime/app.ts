/** The project's own HTTP app: a Hono app, or any object with `fetch`. */
import type { Fields } from "./frame.js";
import type { IncomingCall } from "./link.js";
import { askServer, forCaller } from "./loopback.js";
import { addressOf } from "./request.js";

type Fetch = (request: Request, env: Fields) => Response | Promise<Response>;

/** The used part of a Hono app. */
interface Routed {
    readonly routes?: readonly Route[];
    readonly fetch: Fetch;
    use(path: string, middleware: Middleware): unknown;
    all(path: string, handler: (context: HonoContext) => Promise<Response>): unknown;
    route(path: string, app: unknown): unknown;
}

interface Route {
    readonly path?: unknown;
    readonly method?: unknown;
    readonly handler?: unknown;
}

type Middleware = (context: HonoContext, next: () => Promise<void>) => Promise<void>;

interface HonoContext {
    readonly env: Fields;
    readonly req: { readonly raw: Request };
    set(name: string, value: unknown): void;
}

export class HttpApp {
    readonly #fetch: Fetch;
    /** Only the middleware, around the routes of the server. */
    readonly #wrapping: Fetch;
    readonly #app: unknown;

    constructor(app: unknown) {
        this.#app = app;
        const found = withUser(app) ?? (app as { fetch?: unknown } | undefined)?.fetch ?? app;
        if (typeof found !== "function")
            throw new TypeError("not an HTTP app: expected a Hono or an object with fetch()");
        this.#wrapping = wrapping(app);
        this.#fetch =
            typeof (app as { fetch?: unknown }).fetch === "function"
                ? (found.bind(app) as Fetch)
                : (found as Fetch);
    }

    /** For `ready`. */
    report(): Fields {
        const paths = ((this.#app as Partial<Routed>).routes ?? []).map(({ path }) => path);
        const named = paths.filter(
            (path): path is string => typeof path === "string" && !path.includes("*"),
        );
        return {
            routes: [...new Set(named)].map(patternOf),
            middleware: middlewareOf(this.#app).length > 0,
            openapi: { paths: this.#operations(), schemas: {} },
        };
    }

    /** Paths and methods for /openapi.json; Hono has no further details. */
    #operations(): Fields {
        const paths: Record<string, Fields> = {};
        for (const { path, method } of (this.#app as Partial<Routed>).routes ?? []) {
            if (
                typeof path !== "string" ||
                path.includes("*") ||
                typeof method !== "string" ||
                method === "ALL"
            )
                continue;
            const operations = (paths[patternOf(path)] ??= {});
            operations[method.toLowerCase()] = {
                responses: { default: { description: "Answer" } },
            };
        }
        return paths;
    }

    async request(call: IncomingCall): Promise<void> {
        const serve = call.head.inner === true ? this.#wrapping : this.#fetch;
        const response = await forCaller(call, () =>
            serve(requestOf(call), { user: call.head.user }),
        );
        call.piece(JSON.stringify({ status: response.status, headers: [...response.headers] }));
        if (response.body !== null) await sendBody(call, response.body);
        call.answer();
    }
}

/** `/users/:id` as `/users/{id}`. */
function patternOf(path: string): string {
    return path.replace(/:(\w+)(\{[^}]*\})?\??/g, "{$1}");
}

/** The arguments of `use()`: Hono keeps them among its routes, where a handler takes no `next`. */
function middlewareOf(app: unknown): { readonly path: string; readonly handler: Middleware }[] {
    const { routes = [], use } = (app ?? {}) as Partial<Routed>;
    if (typeof use !== "function") return [];
    return routes.flatMap(({ path, method, handler }) =>
        method === "ALL" &&
        typeof path === "string" &&
        typeof handler === "function" &&
        handler.length >= 2
            ? [{ path, handler: handler as Middleware }]
            : [],
    );
}

function wrapping(app: unknown): Fetch {
    const found = middlewareOf(app);
    if (found.length === 0) return askServer;
    const outer = new ((app as object).constructor as new () => Routed)();
    outer.use("*", setUser);
    for (const { path, handler } of found) outer.use(path, handler);
    outer.all("*", ({ req }) => askServer(req.raw));
    return (request, env) => outer.fetch(request, env);
}

async function setUser(context: HonoContext, next: () => Promise<void>): Promise<void> {
    const user = context.env.user as Fields | undefined;
    if (user) context.set("auth", { user, scopes: user.permissions ?? [] });
    await next();
}

/** Hono's handlers find the caller in `c.get("auth")`, as in LangGraph's own server. */
function withUser(app: unknown): Fetch | undefined {
    const { use, route, fetch } = (app ?? {}) as Partial<Routed>;
    if (typeof use !== "function" || typeof route !== "function" || typeof fetch !== "function")
        return undefined;
    const Hono = (app as object).constructor as new () => Routed;
    const outer = new Hono();
    outer.use("*", setUser);
    outer.route("/", app);
    return (request, env) => outer.fetch(request, env);
}

function requestOf(call: IncomingCall): Request {
    const { head, blobs, signal } = call;
    const method = String(head.method ?? "GET");
    const hasBody = method !== "GET" && method !== "HEAD" && blobs.length > 0;
    const headers = new Headers(head.headers as [string, string][] | undefined);
    return new Request(addressOf(head), {
        method,
        headers,
        signal,
        ...(hasBody ? { body: blobs[0] as Buffer } : {}),
    });
}

async function sendBody(call: IncomingCall, body: ReadableStream<Uint8Array>): Promise<void> {
    const stop = () => void body.cancel().catch(() => {});
    call.signal.addEventListener("abort", stop, { once: true });
    const reader = body.getReader();
    for (;;) {
        const { done, value } = await reader.read();
        if (done || call.isCancelled) return;
        const hindrance = call.hindrance();
        if (hindrance !== undefined) await hindrance;
        if (value.length > 0) call.piece("{}", [value]);
    }
}
