/** Operations on a graph other than runs: updates, drawings, schemas, subgraphs. */
import type { RunnableConfig } from "@langchain/core/runnables";
import { commandOf } from "./command.js";
import { configOf } from "./config.js";
import { member, type Fields } from "./frame.js";
import type { Graph, GraphUpdate } from "./graph.js";
import { RemoteStore } from "./items.js";
import type { IncomingCall } from "./link.js";
import type { Project } from "./project.js";
import { render } from "./render.js";
import { RemoteSaver } from "./saver.js";
import { schemasOf } from "./schemas.js";

/** Steps of a state update, stored as the graph itself would store them. */
export async function update(call: IncomingCall, project: Project): Promise<void> {
    const saver = new RemoteSaver(call);
    const config = { ...configOf(call, saver), store: new RemoteStore(call), signal: call.signal };
    const { graph, dispose } = await project.make(String(call.head.graph), config);
    try {
        const supersteps = await superstepsOf(member(call, "supersteps") as Fields[][], project);
        const target = await graphAt(graph, config as RunnableConfig);
        const made = await target.bulkUpdateState(config as RunnableConfig, supersteps);
        const {
            checkpoint_ns = "",
            checkpoint_id = null,
            checkpoint_map = null,
        } = made.configurable ?? {};
        call.answer({ checkpoint_ns, checkpoint_id, checkpoint_map });
    } finally {
        await saver.settled();
        await dispose?.();
    }
}

async function superstepsOf(supersteps: readonly Fields[][], project: Project) {
    const langgraph = await project.langgraph();
    return supersteps.map((updates) => ({
        updates: updates.map(({ values, command, as_node, task_id }): GraphUpdate => {
            const given = command ? commandOf(command as Fields, langgraph) : (values ?? null);
            // LangGraph distinguishes a key with undefined from a missing key.
            return {
                values: given,
                ...(as_node ? { asNode: as_node as string } : {}),
                ...(task_id ? { taskId: task_id as string } : {}),
            };
        }),
    }));
}

/** The graph of a namespace: with a saver in its configuration, a graph claims all namespaces. */
async function graphAt(graph: Graph, { configurable }: RunnableConfig): Promise<Graph> {
    const ns = (configurable?.checkpoint_ns ?? "") as string;
    if (ns === "") return graph;
    const path = ns
        .split("|")
        .filter((part) => !/^\d+$/.test(part))
        .map((part) => part.split(":")[0])
        .join("|");
    for await (const [name, subgraph] of graph.getSubgraphsAsync(path, true))
        if (name === path) return subgraph;
    throw new Error(`no subgraph "${path}"`);
}

export async function draw(call: IncomingCall, project: Project): Promise<void> {
    const config = configOf(call);
    const { graph, dispose } = await project.make(String(call.head.graph), config);
    try {
        const { xray } = call.head;
        const drawn = await graph.getGraphAsync(xray ? { ...config, xray } : config);
        call.answer({}, [render(drawn.toJSON())]);
    } finally {
        await dispose?.();
    }
}

export async function schemas(call: IncomingCall, project: Project): Promise<void> {
    call.answer({}, [render(await project.schemas(String(call.head.graph)))]);
}

export async function subgraphs(call: IncomingCall, project: Project): Promise<void> {
    const { namespace, recurse } = call.head;
    const { graph, dispose } = await project.make(String(call.head.graph), configOf(call));
    try {
        const found: Fields = {};
        const under = typeof namespace === "string" && namespace !== "" ? namespace : undefined;
        for await (const [name, subgraph] of graph.getSubgraphsAsync(under, recurse === true)) {
            found[name] = await schemasOf(subgraph, project.folder);
        }
        call.answer({}, [render(found)]);
    } finally {
        await dispose?.();
    }
}
