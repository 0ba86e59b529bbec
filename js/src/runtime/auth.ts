/**
 * Custom auth: authenticates requests and authorizes operations (`Auth` of
 * @langchain/langgraph-sdk).
 */
import { failureOf } from "./failure.js";
import { member, type Fields } from "./frame.js";
import type { IncomingCall } from "./link.js";
import { render } from "./render.js";
import { addressOf } from "./request.js";

type Handler = (value: Fields) => unknown;

interface Handlers {
    readonly authenticate?: (request: Request) => unknown;
    readonly callbacks?: Readonly<Record<string, Handler>>;
}

export class CustomAuth {
    readonly #authenticate: (request: Request) => unknown;
    /** By their names in the protocol: `threads.create`, `threads`, `*.create`, `*`. */
    readonly #handlers = new Map<string, Handler>();

    constructor(auth: unknown) {
        const cache = (auth as { readonly "~handlerCache"?: Handlers } | undefined)?.[
            "~handlerCache"
        ];
        if (cache === undefined)
            throw new TypeError("not an Auth of @langchain/langgraph-sdk/auth");
        if (cache.authenticate === undefined)
            throw new TypeError("the Auth has no authenticate() handler");
        this.#authenticate = cache.authenticate;
        for (const [event, handler] of Object.entries(cache.callbacks ?? {})) {
            this.#handlers.set(event.replace(":", "."), handler);
        }
    }

    /** The auth part of `ready`. */
    report(): Fields {
        return { handlers: [...this.#handlers.keys()] };
    }

    async authenticate(call: IncomingCall): Promise<void> {
        const { method, headers } = call.head;
        try {
            const url = addressOf(call.head);
            const request = new Request(url, {
                method: String(method ?? "GET"),
                headers: new Headers(headers as Record<string, string>),
            });
            call.answer({ user: userOf(await this.#authenticate(request)) });
        } catch (error) {
            call.fail(refusalOf(error));
        }
    }

    async authorize(call: IncomingCall): Promise<void> {
        const { resource, action, handler } = call.head;
        const user = (call.head.user ?? {}) as Fields;
        const found = this.#handlers.get(String(handler));
        if (found === undefined) throw new Error(`no handler "${String(handler)}"`);
        const value = member(call, "value");
        const before = render(value);
        try {
            const event = `${String(resource)}:${String(action)}`;
            const permissions = user.permissions ?? [];
            const result = await found({ event, resource, action, value, permissions, user });
            call.answer(decision(result, value, before));
        } catch (error) {
            call.fail(refusalOf(error));
        }
    }
}

function decision(result: unknown, value: unknown, before: string): Fields {
    if (result === false) return { allow: false };
    const report: Fields = { allow: true };
    if (typeof result === "object" && result !== null) {
        checkFilter(result);
        report.filter = result;
    } else if (result !== undefined && result !== null && result !== true) {
        throw new TypeError(
            `a handler returns nothing, true, false or a filter (an object), not a ${typeof result}`,
        );
    }
    const after = render(value);
    if (after !== before) report.value = JSON.parse(after);
    return report;
}

/** JSON omits undefined members: a filter without the member would match everything. */
function checkFilter(filter: object): void {
    for (const [name, wanted] of Object.entries(filter) as [string, unknown][]) {
        if (wanted === undefined) throw new TypeError(`filter member "${name}" is undefined`);
        if (typeof wanted === "object" && wanted !== null) checkFilter(wanted);
    }
}

/** Normalizes any result of authenticate() to an object with an identity. */
function userOf(found: unknown): Fields {
    const user: Fields =
        typeof found === "string" ? { identity: found } : { ...(found as Fields | undefined) };
    if (typeof user.identity !== "string" || user.identity === "") {
        throw new TypeError("authenticate() must return a string or an object with `identity`");
    }
    const permissions = Array.isArray(user.permissions) ? (user.permissions as unknown[]) : [];
    return { is_authenticated: true, display_name: user.identity, ...user, permissions };
}

/** Errors with a status, as those of langgraph-sdk and of Hono, become responses. */
function refusalOf(error: unknown): Fields {
    const { status, message, headers } = (error ?? {}) as Fields;
    if (typeof status !== "number") return failureOf(error);
    return {
        type: "HTTPException",
        message: String(message ?? ""),
        status,
        headers: headersOf(headers),
    };
}

function headersOf(headers: unknown): Fields {
    if (typeof headers !== "object" || headers === null) return {};
    return Object.fromEntries(new Headers(headers as Record<string, string>));
}
