/**
 * The project: its graphs, loaded once, and built for every run where they come from a function.
 */
import { HttpApp } from "./app.js";
import { CustomAuth } from "./auth.js";
import { rememberContexts } from "./contexts.js";
import { Embedder } from "./embed.js";
import { describe, failureOf } from "./failure.js";
import type { Fields } from "./frame.js";
import { asGraph, type Graph, type LangGraph } from "./graph.js";
import { importFrom, loadExport } from "./modules.js";
import { schemasOf, typedSchemas, type Schemas } from "./schemas.js";
import { structureOf } from "./structure.js";
import { Types } from "./types.js";

/** `project` of the response to `hello`. */
export interface ProjectSettings {
    readonly folder: string;
    readonly graphs?: Readonly<
        Record<string, { readonly path: string; readonly description?: string }>
    >;
    readonly auth?: { readonly path: string };
    readonly app?: { readonly path: string };
    readonly embed?: { readonly path: string };
    readonly index?: { readonly dims?: number };
    readonly reload?: boolean;
}

type Factory = (config: Fields, runtime: Fields) => unknown;

/** A missing graph: its code failed to load, or the project does not declare it. */
class LoadError extends Error {
    constructor(id: string, failure?: Fields) {
        super(
            failure === undefined
                ? `no graph "${id}"`
                : `graph "${id}" cannot be loaded: ${String(failure.type)}: ${String(failure.message)}`,
        );
        this.name = "LoadError";
    }
}

export interface MadeGraph {
    readonly graph: Graph;
    /** Set for a graph that was built for this use only. */
    readonly dispose: (() => Promise<void>) | undefined;
}

export class Project {
    readonly folder: string;
    readonly settings: ProjectSettings;
    readonly #types: Types;
    readonly #graphs = new Map<string, Graph | Factory>();
    readonly #failures = new Map<string, LoadError>();
    #langgraph: LangGraph | undefined;
    auth: CustomAuth | undefined;
    app: HttpApp | undefined;
    embedder: Embedder | undefined;

    constructor(settings: ProjectSettings) {
        this.settings = settings;
        this.folder = settings.folder;
        this.#types = new Types(settings.folder, settings.graphs ?? {});
    }

    /** Loads everything; returns the content of `ready`, including failures. */
    async load(): Promise<Fields> {
        const { auth, app, embed, index } = this.settings;
        await rememberContexts(
            this.folder,
            Object.values(this.settings.graphs ?? {}).map(({ path }) => path),
        );
        const report: Fields = { graphs: await this.#loadGraphs() };
        if (auth) {
            report.auth = await this.#try(auth.path, (value) =>
                (this.auth = new CustomAuth(value)).report(),
            );
        }
        if (app)
            report.app = await this.#try(app.path, (value) =>
                (this.app = new HttpApp(value)).report(),
            );
        if (embed) {
            report.embed = await this.#try(embed.path, (value) => {
                this.embedder = new Embedder(value, index?.dims);
                return {};
            });
        }
        return report;
    }

    async #try(path: string, take: (value: unknown) => Fields): Promise<Fields> {
        try {
            return take(await loadExport(this.folder, path));
        } catch (error) {
            return this.#failed(path, error);
        }
    }

    #failed(path: string, error: unknown): Fields {
        const failure = failureOf(error);
        console.error(`cannot load ${path}${describe(failure)}`);
        return { error: failure };
    }

    async #loadGraphs(): Promise<Fields> {
        const described: Fields = {};
        for (const [id, { path }] of Object.entries(this.settings.graphs ?? {})) {
            try {
                this.#graphs.set(id, usable(await loadExport(this.folder, path), path));
                described[id] = await this.#describe(id);
            } catch (error) {
                this.#graphs.delete(id);
                this.#failures.set(id, new LoadError(id, failureOf(error)));
                described[id] = this.#failed(path, error);
            }
        }
        return described;
    }

    /** A graph to run or to inspect; graph functions receive the purpose. */
    async make(id: string, config: Fields, context?: unknown, isRun = false): Promise<MadeGraph> {
        const found = this.#graphs.get(id);
        if (found === undefined) throw this.#failures.get(id) ?? new LoadError(id);
        if (typeof found !== "function") return { graph: found, dispose: undefined };
        const runtime = isRun
            ? { accessContext: "threads.create_run", executionRuntime: { context } }
            : { accessContext: "assistants.read", executionRuntime: null };
        const made = await found(config, runtime);
        const graph = asGraph(made);
        if (graph === undefined)
            throw new TypeError(`the graph function of "${id}" did not return a graph`);
        return { graph, dispose: disposerOf(made) };
    }

    async langgraph(): Promise<LangGraph> {
        this.#langgraph ??= (await importFrom(this.folder, "@langchain/langgraph")) as
            LangGraph | undefined;
        if (this.#langgraph === undefined)
            throw new Error(
                "@langchain/langgraph is not installed in the project: run npm install @langchain/langgraph",
            );
        return this.#langgraph;
    }

    async #describe(id: string): Promise<Fields> {
        let made: MadeGraph;
        try {
            made = await this.make(id, { configurable: {} });
        } catch (error) {
            if (typeof this.#graphs.get(id) !== "function") throw error;
            // It may need data that only a run has.
            return {
                structure: null,
                schemas: null,
                types: this.#types.has(id),
                runtime_only: false,
            };
        }
        try {
            const structure = structureOf(made.graph);
            const schemas = await schemasOf(made.graph, this.folder);
            return { structure, schemas, types: this.#types.has(id), runtime_only: false };
        } finally {
            await made.dispose?.();
        }
    }

    /** Adds the types of the graph's file, so the first call is slow. */
    async schemas(id: string): Promise<Schemas> {
        const found = this.#graphs.get(id);
        if (found === undefined) throw this.#failures.get(id) ?? new LoadError(id);
        const typed = await this.#types.of(id);
        let made: MadeGraph;
        try {
            made = await this.make(id, { configurable: {} });
        } catch {
            return typedSchemas(typed);
        }
        try {
            return await schemasOf(made.graph, this.folder, typed);
        } finally {
            await made.dispose?.();
        }
    }
}

function usable(value: unknown, path: string): Graph | Factory {
    if (typeof value === "function") return value as Factory;
    const graph = asGraph(value);
    if (graph === undefined) {
        throw new TypeError(
            `${path} is not a graph: expected a compiled graph, a StateGraph or a function that returns one`,
        );
    }
    return graph;
}

function disposerOf(made: unknown): (() => Promise<void>) | undefined {
    const dispose = (made as Partial<AsyncDisposable> | null)?.[Symbol.asyncDispose];
    return typeof dispose === "function" ? async () => dispose.call(made) : undefined;
}
