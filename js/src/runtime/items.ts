/** The store of graphs: the server keeps its items. */
import {
    AsyncBatchedStore,
    BaseStore,
    type Item,
    type Operation,
    type OperationResults,
} from "@langchain/langgraph-checkpoint";
import type { Fields } from "./frame.js";
import type { IncomingCall, Link } from "./link.js";

export class RemoteStore extends BaseStore {
    readonly #link: Link;
    readonly #call: number;

    /** @param call the server call this store belongs to */
    constructor(call: IncomingCall) {
        super();
        this.#link = call.link;
        this.#call = call.id;
    }

    async batch<Op extends Operation[]>(operations: Op): Promise<OperationResults<Op>> {
        if (operations.length === 0) return [] as OperationResults<Op>;
        const ops = operations.map(wireOperation);
        const { head, blobs } = await this.#link.call({ op: "items", call: this.#call, ops });
        const results = resultsOf(head.results, blobs);
        return operations.map((operation, i) =>
            result(operation, results[i]),
        ) as OperationResults<Op>;
    }
}

function resultsOf(results: unknown, blobs: readonly Buffer[]): readonly unknown[] {
    if (Array.isArray(results)) return results;
    const index = (results as { $blob?: number } | null)?.$blob;
    if (index === undefined || blobs[index] === undefined)
        throw new Error("the server's response lacks its results");
    return JSON.parse(blobs[index].toString("utf8")) as unknown[];
}

function wireOperation(operation: Operation): Fields {
    if ("value" in operation) {
        const { namespace, key, value, index = null } = operation;
        return {
            op: "put",
            namespace,
            key,
            value,
            index,
            ttl: (operation as { ttl?: number }).ttl ?? null,
        };
    }
    if ("namespacePrefix" in operation) {
        const { namespacePrefix, filter = null, limit = 10, offset = 0, query = null } = operation;
        return {
            op: "search",
            namespace_prefix: namespacePrefix,
            filter,
            limit,
            offset,
            query,
            refresh_ttl: null,
        };
    }
    if ("key" in operation) {
        return { op: "get", namespace: operation.namespace, key: operation.key, refresh_ttl: null };
    }
    const { matchConditions = [], maxDepth = null, limit, offset } = operation;
    const match_conditions = matchConditions.map(({ matchType, path }) => ({
        match_type: matchType,
        path,
    }));
    return { op: "list_namespaces", match_conditions, max_depth: maxDepth, limit, offset };
}

interface WireItem {
    readonly namespace: string[];
    readonly key: string;
    readonly value: Fields;
    readonly created_at: string;
    readonly updated_at: string;
    readonly score?: number | null;
}

function itemOf({ namespace, key, value, created_at, updated_at, score }: WireItem): Item {
    const item = {
        namespace,
        key,
        value,
        createdAt: new Date(created_at),
        updatedAt: new Date(updated_at),
    };
    return score === undefined || score === null ? item : Object.assign(item, { score });
}

function result(operation: Operation, found: unknown): unknown {
    if ("value" in operation) return undefined;
    if ("namespacePrefix" in operation) return (found as WireItem[]).map(itemOf);
    if ("key" in operation)
        return found === null || found === undefined ? null : itemOf(found as WireItem);
    return found;
}

/** The members of LangGraph's wrapper around the store of each run. */
interface Wrapper {
    store: unknown;
    running: boolean;
    start(): void;
    stop(): Promise<void>;
    enqueueOperation(operation: Operation): Promise<unknown>;
}

/**
 * LangGraph wraps the store of every run in one that polls its queue every millisecond for the
 * whole run. For this store the queue is flushed directly instead, with all operations queued
 * before the next turn of the event loop.
 */
export function skipPolling(wrapper: { readonly prototype: object } = AsyncBatchedStore): void {
    const prototype = wrapper.prototype as Wrapper;
    const { start, stop, enqueueOperation } = prototype;
    if (![start, stop, enqueueOperation].every((method) => typeof method === "function")) return;
    const queues = new WeakMap<object, Batch>();
    prototype.start = function (this: Wrapper): void {
        if (!(this.store instanceof RemoteStore)) return start.call(this);
        this.running = true;
        queues.set(this, new Batch(this.store));
    };
    prototype.stop = async function (this: Wrapper): Promise<void> {
        if (!(this.store instanceof RemoteStore)) return stop.call(this);
        this.running = false;
        await queues.get(this)?.flushed;
    };
    prototype.enqueueOperation = function (this: Wrapper, operation: Operation): Promise<unknown> {
        const batch = queues.get(this);
        return batch === undefined ? enqueueOperation.call(this, operation) : batch.add(operation);
    };
}

class Batch {
    readonly #store: RemoteStore;
    #operations: Operation[] = [];
    flushed: Promise<unknown> | undefined;
    #next: Promise<readonly unknown[]> | undefined;

    constructor(store: RemoteStore) {
        this.#store = store;
    }

    add(operation: Operation): Promise<unknown> {
        const index = this.#operations.push(operation) - 1;
        if (this.#next === undefined) {
            this.#next = this.#flush();
            this.flushed = Promise.allSettled([this.flushed, this.#next]);
        }
        return this.#next.then((results) => results[index]);
    }

    async #flush(): Promise<readonly unknown[]> {
        await new Promise<void>((resolve) => process.nextTick(resolve));
        const operations = this.#operations;
        this.#operations = [];
        this.#next = undefined;
        return this.#store.batch(operations);
    }
}
