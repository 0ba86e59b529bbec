/** Tracks running tools for the receipts of cancelled runs. */
import { BaseCallbackHandler } from "@langchain/core/callbacks/base";
import type { Serialized } from "@langchain/core/load/serializable";
import type { Graph } from "./graph.js";

const MAX_DEPTH = 16;
const known = new WeakMap<Graph, boolean>();

/** Tracking has a small cost at every step, so it is enabled only for graphs with tools. */
export function hasTools(graph: Graph, depth = 0): boolean {
    let found = known.get(graph);
    if (found === undefined) {
        found = Object.values(graph.nodes).some(({ bound }) => isToolNode(bound));
        if (!found && depth < MAX_DEPTH) {
            for (const [, subgraph] of graph.getSubgraphs(undefined, false))
                found ||= hasTools(subgraph, depth + 1);
        }
        known.set(graph, found);
    }
    return found;
}

function isToolNode(bound: unknown): boolean {
    return Array.isArray((bound as { tools?: unknown } | undefined)?.tools);
}

export class ToolWatch extends BaseCallbackHandler {
    override name = "heddle-tools";
    override ignoreLLM = true;
    override ignoreChain = true;
    override ignoreAgent = false;
    override ignoreRetriever = true;
    override ignoreCustomEvent = true;
    readonly #running = new Map<string, string>();

    names(): string[] {
        return [...this.#running.values()];
    }

    override handleToolStart(
        tool: Serialized,
        _input: string,
        runId: string,
        _parentRunId?: string,
        _tags?: string[],
        _metadata?: Record<string, unknown>,
        name?: string,
    ): void {
        this.#running.set(runId, name ?? tool.name ?? tool.id?.at(-1) ?? "tool");
    }

    override handleToolEnd(_output: unknown, runId: string): void {
        this.#running.delete(runId);
    }

    override handleToolError(_error: unknown, runId: string): void {
        // A cancelled tool was running.
        const name = (_error as Error | undefined)?.name;
        if (name !== "AbortError") this.#running.delete(runId);
    }
}
