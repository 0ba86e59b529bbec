/**
 * The context schemas of graphs. LangGraph keeps zod schemas; it drops an Annotation, which exists
 * for its types, as soon as the StateGraph is built. This module records its names, so it starts
 * before the project's files are loaded.
 */
import { existsSync, readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join, resolve } from "node:path";
import type { Fields } from "./frame.js";
import { importFrom, splitPath } from "./modules.js";

interface StateGraphClass {
    readonly prototype: { _normalizeToStateGraphInit?: (...given: unknown[]) => unknown };
}

const contexts = new WeakMap<object, unknown>();

const LANGGRAPH = "@langchain/langgraph";

/**
 * Patches the copies of LangGraph that these files will load: ES modules and CommonJS each have
 * their own.
 */
export async function rememberContexts(folder: string, paths: readonly string[]): Promise<void> {
    try {
        const kinds = new Set(paths.map((path) => isModule(resolve(folder, splitPath(path).file))));
        if (kinds.has(true)) remember(await importFrom(folder, LANGGRAPH));
        if (kinds.has(false))
            remember(createRequire(join(folder, "package.json"))(LANGGRAPH) as Fields);
    } catch {
        // The graphs' own import fails too, and reports the reason.
    }
}

/** As Node.js and tsx decide it: by the file extension, then by the nearest package.json. */
function isModule(file: string): boolean {
    if (/\.m[jt]s$/.test(file)) return true;
    if (/\.c[jt]s$/.test(file)) return false;
    for (let at = dirname(file); ; at = dirname(at)) {
        const path = join(at, "package.json");
        if (existsSync(path))
            return (JSON.parse(readFileSync(path, "utf8")) as Fields).type === "module";
        if (at === dirname(at)) return false;
    }
}

function remember(langgraph: Fields | undefined): void {
    const { prototype } = (langgraph?.StateGraph ?? {}) as Partial<StateGraphClass>;
    const normalize = prototype?._normalizeToStateGraphInit;
    if (prototype === undefined || typeof normalize !== "function") return;
    prototype._normalizeToStateGraphInit = function (this: object, ...given: unknown[]): unknown {
        const init = normalize.apply(this, given);
        const context = (init as { context?: unknown } | null)?.context;
        if (context !== undefined) contexts.set(this, context);
        return init;
    };
}

/** The context schema of a graph's builder; undefined when unknown. */
export function contextOf(builder: unknown): unknown {
    return typeof builder === "object" && builder !== null ? contexts.get(builder) : undefined;
}
