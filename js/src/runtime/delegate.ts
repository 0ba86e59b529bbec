/** Calls other assistants of the server from a graph. */
import { AsyncLocalStorageProviderSingleton } from "@langchain/core/singletons";
import type { Fields } from "./frame.js";
import { render } from "./render.js";
import { callOf } from "./saver.js";

/** The other assistant's run failed; `status` is the status of the run. */
export class DelegateError extends Error {
    override name = "DelegateError";
    readonly status: string;

    constructor(status: string, message: string) {
        super(message);
        this.status = status;
    }
}

export interface Assistant {
    readonly id: string;
    /** Runs it with this input; returns its last values. */
    invoke(input: unknown): Promise<unknown>;
}

/**
 * Another assistant, by its id or its graph's name, to be called from a node. It runs as a separate
 * run in the same thread, with its own checkpoints; it may be native, Python or TypeScript.
 */
export function assistant(id: string): Assistant {
    return { id, invoke: (input) => invoke(id, input) };
}

async function invoke(id: string, input: unknown): Promise<unknown> {
    const config = AsyncLocalStorageProviderSingleton.getRunnableConfig() as
        { configurable?: Fields } | undefined;
    const call = callOf(config);
    if (call === undefined) throw new Error("an assistant can be called only from a node of a run");
    const head = {
        op: "delegate",
        call: call.id,
        assistant: id,
        input: { $blob: 0 },
        key: call.nextKey(placeOf(config)),
    };
    const answer = await call.link.call(head, { blobs: [render(input)], signal: call.signal });
    const { status, error } = answer.head as { status: string; error?: Fields };
    if (status !== "done") {
        throw new DelegateError(
            status,
            `assistant "${id}": ${String(error?.message ?? `the run is ${status}`)}`,
        );
    }
    return answer.blobs[0] === undefined
        ? null
        : (JSON.parse(answer.blobs[0].toString("utf8")) as unknown);
}

/** The calling task: the same when the run is retried. */
function placeOf(config: { configurable?: Fields } | undefined): string {
    return String(config?.configurable?.checkpoint_ns ?? "");
}
