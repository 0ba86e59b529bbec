/**
 * JSON Schemas of the input, output, state and context of a graph. Those of zod and of state
 * schemas are exact. Annotations keep only their names at run time; `types.ts` adds the types.
 */
import { contextOf } from "./contexts.js";
import type { Fields } from "./frame.js";
import type { Graph } from "./graph.js";
import { importFrom } from "./modules.js";

export interface Schemas {
    readonly input: unknown;
    readonly output: unknown;
    readonly state: unknown;
    readonly config: unknown;
    readonly context: unknown;
}

type SchemaFunction = (graph: Graph) => unknown;

/** `typed`: the schemas from the types of the graph's file, by the names of `Schemas`. */
export async function schemasOf(
    graph: Graph,
    folder: string,
    typed: Fields = {},
): Promise<Schemas> {
    const zod =
        graph.builder === undefined
            ? undefined
            : await importFrom(folder, "@langchain/langgraph/zod/schema");
    const made = (name: string): unknown => {
        try {
            return (zod?.[name] as SchemaFunction | undefined)?.(graph) ?? null;
        } catch {
            return null;
        }
    };
    const config =
        made("getConfigTypeSchema") ?? (await contextSchema(graph, folder, typed.config));
    return {
        input:
            made("getInputTypeSchema") ??
            titled(typed.input, "Input") ??
            namesOf(graph, graph.inputChannels, "Input"),
        output:
            made("getOutputTypeSchema") ??
            titled(typed.output, "Output") ??
            namesOf(graph, graph.outputChannels, "Output"),
        state:
            made("getStateTypeSchema") ??
            titled(typed.state, "State") ??
            namesOf(graph, graph.streamChannelsAsIs, "State"),
        config,
        context: config,
    };
}

/** For a graph that only a run can build, the types are the only source. */
export function typedSchemas({ input, output, state, config }: Fields): Schemas {
    const context = titled(config, "Context") ?? null;
    return {
        input: titled(input, "Input") ?? null,
        output: titled(output, "Output") ?? null,
        state: titled(state, "State") ?? null,
        config: context,
        context,
    };
}

function titled(schema: unknown, title: string): unknown {
    return typeof schema === "object" && schema !== null ? { title, ...schema } : undefined;
}

interface JsonSchemas {
    toJsonSchema(schema: unknown): unknown;
}

/**
 * Covers schemas that LangGraph's own function does not: self-describing schemas, annotations,
 * other versions of zod.
 */
async function contextSchema({ builder }: Graph, folder: string, typed: unknown): Promise<unknown> {
    const context = contextOf(builder) as Fields | undefined;
    if (context === undefined) return titled(typed, "Context") ?? null;
    if (typeof context.getJsonSchema === "function") return context.getJsonSchema();
    const names =
        typeof context.spec === "object" && context.spec !== null
            ? Object.keys(context.spec)
            : undefined;
    if (names !== undefined) return titled(typed, "Context") ?? schemaOf(names, "Context");
    try {
        const core = (await importFrom(folder, "@langchain/core/utils/json_schema")) as
            JsonSchemas | undefined;
        return core?.toJsonSchema(context) ?? null;
    } catch {
        return null;
    }
}

const MESSAGES = { type: "array", items: { type: "object" } };

function namesOf(graph: Graph, channels: string | readonly string[], title: string): Fields | null {
    // The input of a StateGraph is its whole state, in one channel.
    const names = channels === "__start__" ? graph.streamChannelsAsIs : channels;
    return typeof names === "string" ? null : schemaOf(names, title);
}

function schemaOf(names: readonly string[], title: string): Fields {
    const properties: Fields = {};
    for (const name of names) properties[name] = name === "messages" ? MESSAGES : {};
    return { title, type: "object", properties };
}
