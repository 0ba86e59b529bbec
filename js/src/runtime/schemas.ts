/**
 * JSON Schemas of what a graph takes and gives, as far as it knows them while it runs: those of zod
 * and of state schemas are exact; of annotations only the names are left.
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

export async function schemasOf(graph: Graph, folder: string): Promise<Schemas> {
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
    const config = made("getConfigTypeSchema") ?? (await contextSchema(graph, folder));
    return {
        input: made("getInputTypeSchema") ?? namesOf(graph, graph.inputChannels, "Input"),
        output: made("getOutputTypeSchema") ?? namesOf(graph, graph.outputChannels, "Output"),
        state: made("getStateTypeSchema") ?? namesOf(graph, graph.streamChannelsAsIs, "State"),
        config,
        context: config,
    };
}

interface JsonSchemas {
    toJsonSchema(schema: unknown): unknown;
}

/** Of what LangGraph's own function does not know: schemas that describe themselves, Annotations, other kinds of zod. */
async function contextSchema({ builder }: Graph, folder: string): Promise<unknown> {
    const context = contextOf(builder) as Fields | undefined;
    if (context === undefined) return null;
    if (typeof context.getJsonSchema === "function") return context.getJsonSchema();
    const names =
        typeof context.spec === "object" && context.spec !== null
            ? Object.keys(context.spec)
            : undefined;
    if (names !== undefined) return schemaOf(names, "Context");
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
