/** The structure of a graph that the server needs to read its checkpoints. */
import type { Fields } from "./frame.js";
import type { Graph } from "./graph.js";

/** The maximum nesting of subgraphs, for graphs that contain themselves. */
const MAX_DEPTH = 16;

export function structureOf(graph: Graph, depth = 0): Fields {
    const subgraphs =
        depth < MAX_DEPTH
            ? new Map(graph.getSubgraphs(undefined, false))
            : new Map<string, Graph>();
    return {
        kind: isFunctional(graph) ? "functional" : "graph",
        channels: channelsOf(graph),
        reducers: reducersOf(graph),
        initial: initialOf(graph),
        stream_channels: graph.streamChannelsAsIs,
        output_channels: graph.outputChannels,
        input_channels: graph.inputChannels,
        nodes: nodesOf(graph, subgraphs, depth),
        interrupt_before: graph.interruptBefore ?? [],
        interrupt_after: graph.interruptAfter ?? [],
    };
}

/** An entrypoint keeps its return value for its next call. */
function isFunctional(graph: Graph): boolean {
    return "__previous__" in graph.channels && "__end__" in graph.channels;
}

function channelsOf(graph: Graph): Fields {
    const result: Fields = {};
    for (const [name, channel] of Object.entries(graph.channels)) {
        if (channel.lg_is_channel === true)
            result[name] = String(channel.lc_graph_name ?? channel.constructor.name);
    }
    return result;
}

/**
 * Channels with a reducer that the server implements; of functions only LangGraph's own is
 * recognized.
 */
function reducersOf(graph: Graph): Fields {
    const result: Fields = {};
    for (const [name, channel] of Object.entries(graph.channels)) {
        const operator = channel.operator as { readonly name?: string } | undefined;
        if (operator?.name === "messagesStateReducer") result[name] = "messages";
    }
    return result;
}

/** The initial values of channels. */
function initialOf(graph: Graph): Fields {
    const result: Fields = {};
    for (const [name, channel] of Object.entries(graph.channels)) {
        if (
            channel.lc_graph_name !== "BinaryOperatorAggregate" ||
            typeof channel.initialValueFactory !== "function"
        )
            continue;
        const value = firstValue(channel.initialValueFactory as () => unknown);
        if (value !== undefined && value !== null && isPlain(value)) result[name] = value;
    }
    return result;
}

function firstValue(make: () => unknown): unknown {
    try {
        return make();
    } catch {
        return undefined;
    }
}

/** Reports whether JSON preserves the value. */
function isPlain(value: unknown, depth = 0): boolean {
    if (typeof value !== "object" || value === null) {
        return (
            ["string", "boolean"].includes(typeof value) || value === null || Number.isFinite(value)
        );
    }
    if (depth > MAX_DEPTH) return false;
    if (Array.isArray(value)) return value.every((item) => isPlain(item, depth + 1));
    return (
        Object.getPrototypeOf(value) === Object.prototype &&
        Object.values(value).every((item) => isPlain(item, depth + 1))
    );
}

function nodesOf(graph: Graph, subgraphs: ReadonlyMap<string, Graph>, depth: number): Fields {
    const specs = (graph.builder?.nodes ?? {}) as Readonly<
        Record<string, { defer?: boolean } | undefined>
    >;
    const result: Fields = {};
    for (const [name, node] of Object.entries(graph.nodes)) {
        const subgraph = subgraphs.get(name);
        result[name] = {
            triggers: node.triggers,
            subgraph: subgraph === undefined ? null : structureOf(subgraph, depth + 1),
            deferred: specs[name]?.defer === true,
            metadata: plain(node.metadata) ?? {},
            checkpointer:
                typeof subgraph?.checkpointer === "boolean" ? subgraph.checkpointer : null,
        };
    }
    return result;
}

/** A copy of a JSON value; undefined for other values. */
function plain(value: unknown): unknown {
    try {
        return JSON.parse(JSON.stringify(value));
    } catch {
        return undefined;
    }
}
