/**
 * JSON Schemas of what a graph takes and gives, as far as it knows them while it runs: those of zod
 * and of state schemas are exact; of annotations only the names are left.
 */
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
  const zod = graph.builder === undefined ? undefined : await importFrom(folder, "@langchain/langgraph/zod/schema");
  const made = (name: string): unknown => {
    try {
      return (zod?.[name] as SchemaFunction | undefined)?.(graph) ?? null;
    } catch {
      return null;
    }
  };
  const config = made("getConfigTypeSchema");
  return {
    input: made("getInputTypeSchema") ?? namesOf(graph, graph.inputChannels, "Input"),
    output: made("getOutputTypeSchema") ?? namesOf(graph, graph.outputChannels, "Output"),
    state: made("getStateTypeSchema") ?? namesOf(graph, graph.streamChannelsAsIs, "State"),
    config,
    context: config,
  };
}

const MESSAGES = { type: "array", items: { type: "object" } };

function namesOf(graph: Graph, channels: string | readonly string[], title: string): Fields | null {
  // The input of a StateGraph is its whole state, in one channel.
  const names = channels === "__start__" ? graph.streamChannelsAsIs : channels;
  if (typeof names === "string") return null;
  const properties: Fields = {};
  for (const name of names) properties[name] = name === "messages" ? MESSAGES : {};
  return { title, type: "object", properties };
}
