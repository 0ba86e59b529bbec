/** Events of a run: LangGraph's stream chunks in the format of API clients. */
import type { BaseMessage } from "@langchain/core/messages";
import type { Fields } from "./frame.js";
import { render } from "./render.js";

/** Members of a configuration that LangGraph sets and clients may see. */
const SHOWN = [
    "thread_id",
    "checkpoint_ns",
    "checkpoint_id",
    "checkpoint_map",
    "run_id",
    "graph_id",
    "assistant_id",
];

const CHECKPOINT = {
    thread_id: undefined,
    checkpoint_ns: "",
    checkpoint_id: undefined,
    checkpoint_map: null,
};

/** `{thread_id, checkpoint_ns, checkpoint_id, checkpoint_map}` of a configuration; null when it has none. */
function checkpointOf(config: unknown): Fields | null {
    const configurable = (config as { configurable?: Fields } | undefined)?.configurable;
    if (configurable?.thread_id === undefined) return null;
    const result: Fields = {};
    for (const [name, fallback] of Object.entries(CHECKPOINT))
        result[name] = configurable[name] ?? fallback;
    return result;
}

/** Configurables may hold secrets and objects of the runtime: only known members are shown. */
function shownConfig(config: unknown): unknown {
    if (typeof config !== "object" || config === null) return config ?? null;
    const { configurable, metadata, tags, recursion_limit, run_id } = config as Fields;
    const shown: Fields = {};
    for (const name of SHOWN) {
        const value = (configurable as Fields | undefined)?.[name];
        if (value !== undefined) shown[name] = value;
    }
    return { configurable: shown, metadata, tags, recursion_limit, run_id };
}

function shownTask(task: Fields): Fields {
    const { state, ...rest } = task;
    const checkpoint = checkpointOf(state);
    return checkpoint === null ? task : { ...rest, checkpoint };
}

function shownCheckpoint(payload: Fields): Fields {
    const { config, parentConfig, tasks, ...rest } = payload;
    return {
        ...rest,
        config: shownConfig(config),
        parent_config: shownConfig(parentConfig),
        tasks: ((tasks ?? []) as Fields[]).map(shownTask),
        checkpoint: checkpointOf(config),
        parent_checkpoint: checkpointOf(parentConfig),
    };
}

function shownDebug(chunk: Fields): Fields {
    const payload = chunk.payload as Fields;
    return {
        ...chunk,
        payload: chunk.type === "checkpoint" ? shownCheckpoint(payload) : shownTask(payload),
    };
}

/** The JSON text of a streamed chunk in a mode; undefined when it is not for clients. */
export function pieceText(mode: string, chunk: unknown): string | undefined {
    switch (mode) {
        case "debug":
            return render(shownDebug(chunk as Fields));
        case "checkpoints":
            // Envelopes without values belong to LangGraph's own protocol.
            return "values" in (chunk as Fields)
                ? render(shownCheckpoint(chunk as Fields))
                : undefined;
        case "tasks":
            return render(shownTask(chunk as Fields));
        case "messages":
            return render(chunk, { showChunks: true });
        default:
            return render(chunk);
    }
}

/**
 * The namespace of a streamed message: LangGraph names the task, clients expect the graph it
 * belongs to.
 */
export function messageNamespace(chunk: unknown): string {
    const metadata = (chunk as [BaseMessage, Fields | undefined])[1] ?? {};
    const ns = metadata.langgraph_checkpoint_ns ?? metadata.checkpoint_ns ?? "";
    return String(ns).split("|").slice(0, -1).join("|");
}

/** Reports whether a model produced this message, not the graph's own code. */
export function isFromModel(chunk: unknown): boolean {
    const message = (chunk as [BaseMessage | undefined])[0];
    return message?.type === "ai";
}
