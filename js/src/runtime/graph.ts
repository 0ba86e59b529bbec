/**
 * The interface of a compiled graph that the runtime needs. Graphs are recognized by their members
 * and not by `instanceof`: a project has its own copy of LangGraph.
 */
import type { RunnableConfig } from "@langchain/core/runnables";
import type { Fields } from "./frame.js";

export interface GraphNode {
    readonly triggers: readonly string[];
    readonly metadata?: Fields;
    readonly bound?: unknown;
}

export interface GraphUpdate {
    readonly values?: unknown;
    readonly asNode?: string;
    readonly taskId?: string;
}

export interface Graph {
    readonly channels: Readonly<Record<string, Fields>>;
    readonly nodes: Readonly<Record<string, GraphNode>>;
    readonly inputChannels: string | readonly string[];
    readonly outputChannels: string | readonly string[];
    readonly streamChannelsAsIs: string | readonly string[];
    readonly interruptBefore?: "*" | readonly string[];
    readonly interruptAfter?: "*" | readonly string[];
    readonly checkpointer?: unknown;
    readonly builder?: Fields;
    stream(input: unknown, options: Fields): Promise<AsyncIterable<unknown>>;
    streamEvents(input: unknown, options: Fields): AsyncIterable<StreamEvent>;
    getSubgraphs(namespace?: string, recurse?: boolean): Iterable<[string, Graph]>;
    getSubgraphsAsync(namespace?: string, recurse?: boolean): AsyncIterable<[string, Graph]>;
    getGraphAsync(config: Fields): Promise<{ toJSON(): Fields }>;
    bulkUpdateState(
        config: RunnableConfig,
        supersteps: readonly { updates: readonly GraphUpdate[] }[],
    ): Promise<RunnableConfig>;
}

export interface StreamEvent {
    readonly event: string;
    readonly run_id: string;
    readonly tags?: readonly string[];
    readonly data: { readonly chunk?: unknown };
}

/** The used part of @langchain/langgraph, from the project's own copy. */
export interface LangGraph {
    readonly Command: new (fields: Fields) => object;
    readonly Send: new (node: string, args: unknown) => object;
}

function isObject(value: unknown): value is Fields {
    return typeof value === "object" && value !== null;
}

export function isGraph(value: unknown): value is Graph {
    return isObject(value) && value.lg_is_pregel === true && typeof value.stream === "function";
}

/**
 * The compiled graph of a builder, or of an agent that contains one; undefined for other values.
 */
export function asGraph(value: unknown): Graph | undefined {
    if (!isObject(value)) return undefined;
    // A LangChain agent looks like a graph and contains the real one.
    if (isGraph(value.graph)) return value.graph;
    if (isGraph(value)) return value;
    return typeof value.compile === "function"
        ? asGraph((value.compile as () => unknown)())
        : undefined;
}
