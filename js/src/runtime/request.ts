/** Requests of the HTTP API as Web requests. */
import type { Fields } from "./frame.js";

/** The URL of a request to the server. */
export function addressOf({ path, query, headers }: Fields): string {
    const host = hostOf(headers) ?? "localhost";
    const text = queryText(query);
    return `http://${host}${String(path ?? "/")}${text === "" ? "" : `?${text}`}`;
}

function hostOf(headers: unknown): string | undefined {
    const pairs = Array.isArray(headers)
        ? (headers as [string, string][])
        : Object.entries((headers ?? {}) as Record<string, string>);
    const host = pairs.find(([name]) => name.toLowerCase() === "host")?.[1];
    return host !== undefined && /^[\w.[\]:-]+$/.test(host) ? host : undefined;
}

function queryText(query: unknown): string {
    if (typeof query === "string") return query.replace(/^\?/, "");
    if (typeof query !== "object" || query === null) return "";
    const pairs = Object.entries(query).flatMap(([name, value]) =>
        [value].flat().map((each): [string, string] => [name, String(each)]),
    );
    return new URLSearchParams(pairs).toString();
}
