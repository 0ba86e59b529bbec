/**
 * Schemas from the types of a project's TypeScript files, which a graph does not keep at run time.
 * Uses the project's own compiler. It starts with the first request for schemas, in a thread with
 * limits, and reads all graphs in one pass.
 */
import { createRequire } from "node:module";
import { join, resolve } from "node:path";
import { Worker } from "node:worker_threads";
import type { Fields } from "./frame.js";
import { splitPath } from "./modules.js";
import type { TypeAnswer, TypedGraph, TypeWork } from "./typethread.js";

const TYPESCRIPT = /\.[cm]?tsx?$/;
const TIMEOUT_MS = 30_000;
const MAX_TIMEOUT_MS = 50_000;
const MAX_HEAP_MB = 1024;
const MAX_ANSWER = 4 << 20;

/**
 * LANGGRAPH_SCHEMA_RESOLVE_TIMEOUT_MS as LangGraph's own server reads it, below the server's limit
 * for a response.
 */
function timeoutOf(): number {
    const given = Number.parseInt(process.env.LANGGRAPH_SCHEMA_RESOLVE_TIMEOUT_MS ?? "", 10);
    return given > 0 ? Math.min(given, MAX_TIMEOUT_MS) : TIMEOUT_MS;
}

function compilerOf(folder: string): string | undefined {
    try {
        return createRequire(join(folder, "package.json")).resolve("typescript");
    } catch {
        return undefined;
    }
}

function fail(reason: string): void {
    console.error(`schemas from types are incomplete: ${reason}`);
}

export class Types {
    readonly #work: TypeWork | undefined;
    readonly #found = new Map<string, Fields>();
    #reading: Promise<void> | undefined;

    constructor(folder: string, paths: Readonly<Record<string, { readonly path: string }>>) {
        const graphs = Object.entries(paths)
            .map(([id, { path }]): TypedGraph => ({
                id,
                file: resolve(folder, splitPath(path).file),
                name: splitPath(path).name,
            }))
            .filter(({ file }) => TYPESCRIPT.test(file));
        const typescript = graphs.length > 0 ? compilerOf(folder) : undefined;
        if (typescript !== undefined) this.#work = { typescript, graphs };
    }

    /** Reports whether the types of this graph can be read. */
    has(id: string): boolean {
        return this.#work?.graphs.some((graph) => graph.id === id) === true;
    }

    /** {"input", "output", "state", "config"} as far as the types give them; a failure is logged and gives none. */
    async of(id: string): Promise<Fields> {
        if (!this.has(id)) return {};
        this.#reading ??= this.#read(this.#work!).catch((error: Error) => fail(error.message));
        await this.#reading;
        return this.#found.get(id) ?? {};
    }

    #read(work: TypeWork): Promise<void> {
        return new Promise((done) => {
            const limits = { maxOldGenerationSizeMb: MAX_HEAP_MB };
            const thread = new Worker(new URL("./typethread.js", import.meta.url), {
                workerData: work,
                execArgv: [],
                resourceLimits: limits,
            });
            const timeout = timeoutOf();
            const timer = setTimeout(() => {
                fail(
                    `the compiler did not finish in ${timeout / 1000} s (LANGGRAPH_SCHEMA_RESOLVE_TIMEOUT_MS)`,
                );
                void thread.terminate();
            }, timeout);
            thread.on("message", (text: string) => this.#take(text));
            thread.on("error", (error) => fail(error.message));
            thread.on("exit", () => {
                clearTimeout(timer);
                done();
            });
            thread.unref();
        });
    }

    #take(text: string): void {
        if (text.length > MAX_ANSWER) return fail("the schemas of a graph are over 4 MiB");
        const { id, schemas, error } = JSON.parse(text) as TypeAnswer;
        if (error !== undefined) fail(`graph "${id}": ${error}`);
        else if (schemas !== undefined) this.#found.set(id, schemas);
    }
}
