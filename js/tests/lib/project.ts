/** The project with the graphs of the tests. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

export const folder = fileURLToPath(new URL("../project", import.meta.url));

const config = JSON.parse(readFileSync(join(folder, "langgraph.json"), "utf8")) as {
    graphs: Record<string, string | { path: string }>;
};

export const graphs: Readonly<Record<string, { readonly path: string }>> = Object.fromEntries(
    Object.entries(config.graphs).map(([id, spec]) => [
        id,
        typeof spec === "string" ? { path: spec } : spec,
    ]),
);

/** Replaces names that differ between runs by numbers, in order of first occurrence. */
export function normalized(value: unknown): unknown {
    const names = new Map<string, string>();
    const text = JSON.stringify(value).replace(
        /(?:run-)?[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}|\b[0-9a-f]{32}\b/g,
        (name) => names.get(name) ?? (names.set(name, `id-${names.size}`), `id-${names.size - 1}`),
    );
    return JSON.parse(text);
}
