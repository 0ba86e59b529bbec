/** The configuration of a call in LangGraph's format. */
import { member, type Fields } from "./frame.js";
import type { IncomingCall } from "./link.js";
import type { RemoteSaver } from "./saver.js";

const PLACE = ["checkpoint_id", "checkpoint_ns", "checkpoint_map"];

export function configOf(call: IncomingCall, saver?: RemoteSaver): Fields {
    const { head } = call;
    const given = (member(call, "config") ?? {}) as Fields;
    const configurable: Fields = { ...(given.configurable as Fields | undefined) };
    // LangGraph checks which keys are present.
    for (const name of PLACE) {
        const value = head[name] ?? configurable[name];
        if (value === null || value === undefined || value === "") delete configurable[name];
        else configurable[name] = value;
    }
    if (head.thread_id) configurable.thread_id ??= head.thread_id;
    if (head.graph) configurable.graph_id ??= head.graph;
    if (head.assistant_id) configurable.assistant_id ??= head.assistant_id;
    if (saver !== undefined) configurable.__pregel_checkpointer = saver;
    return {
        configurable,
        metadata: given.metadata ?? {},
        tags: given.tags ?? [],
        ...limitsOf(given),
    };
}

/** Omitted where not set, so that the graph's own settings apply. */
function limitsOf({ recursion_limit, max_concurrency, run_name }: Fields): Fields {
    const limits: Fields = {};
    if (typeof recursion_limit === "number") limits.recursionLimit = recursion_limit;
    if (typeof max_concurrency === "number") limits.maxConcurrency = max_concurrency;
    if (typeof run_name === "string") limits.runName = run_name;
    return limits;
}
