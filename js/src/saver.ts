/**
 * HeddleSaver: a LangGraph checkpointer on libheddle.
 */
import {
    BaseCheckpointSaver,
    getCheckpointId,
    type ChannelVersions,
    type Checkpoint,
    type CheckpointListOptions,
    type CheckpointMetadata,
    type CheckpointPendingWrite,
    type CheckpointTuple,
    type DeltaChannelHistory,
    type PendingWrite,
    type SerializerProtocol,
} from "@langchain/langgraph-checkpoint";
import type { RunnableConfig } from "@langchain/core/runnables";
import { CANONICAL, CanonicalSerializer, type Dumped } from "./canonical.js";
import { setOwn } from "./decode.js";
import {
    native,
    type Data,
    type NativeList,
    type NativeStore,
    type NativeTuple,
} from "./native.js";
import { HeddleStore, type ThreadInfo, type ThreadUsage } from "./store.js";
import { addWrite, hintOf, migrateSends } from "./tuples.js";
import { nextVersion } from "./version.js";

type Fields = Record<string, unknown>;

export interface HeddleSaverOptions {
    /** Replaces the canonical encoding for all values. */
    readonly serde?: SerializerProtocol;
    /**
     * The owner of the threads. Savers with different principals do not see each other's threads,
     * even with the same id. Must not contain a colon.
     */
    readonly principal?: string;
}

/** A checkpoint without its values. */
export interface CheckpointHeader {
    readonly config: RunnableConfig;
    readonly checkpoint: Omit<Checkpoint, "channel_values">;
    readonly metadata: CheckpointMetadata;
    readonly parentConfig?: RunnableConfig;
}

export interface PruneOptions {
    /**
     * `keep_latest` keeps the newest checkpoint of each namespace with its data; `delete` removes
     * everything.
     */
    readonly strategy?: "keep_latest" | "delete";
}

export interface ListThreadsOptions {
    /** Only threads whose id follows this one in byte order. */
    readonly after?: string;
    readonly limit?: number;
}

/** Buffer converts longer texts to UTF-8 several times as fast as the addon can. */
const LONG_TEXT = 1000;

/** The page size of a listing: small at first, for consumers that stop early. */
const FIRST_PAGE = 4;
const LARGEST_PAGE = 64;
const THREADS_PAGE = 256;

/** Keys of one checkpoint: principal, thread, namespace, id. */
type Key = readonly [principal: string, thread: string, ns: string, id: string | null];

export class HeddleSaver extends BaseCheckpointSaver<string> {
    readonly #store: HeddleStore;
    readonly #principal: string;
    readonly #canonical: CanonicalSerializer;
    readonly #ownsStore: boolean;

    /**
     * A saver on a store that is opened and closed elsewhere. `HeddleSaver.fromConnString` creates
     * one with its own store.
     */
    constructor(store: HeddleStore, options?: HeddleSaverOptions);
    /** @internal */
    constructor(store: HeddleStore, options: HeddleSaverOptions | undefined, ownsStore: boolean);
    constructor(store: HeddleStore, options: HeddleSaverOptions = {}, ownsStore = false) {
        super();
        if (!(store instanceof HeddleStore)) throw new TypeError("HeddleSaver needs a HeddleStore");
        this.#store = store;
        this.#principal = principalOf(options.principal);
        this.#canonical = new CanonicalSerializer(this.serde);
        this.#ownsStore = ownsStore;
        this.serde = options.serde ?? this.#canonical;
    }

    /**
     * A saver for a database, which is created if it does not exist.
     *
     * Returns at once; the database opens in the background and every call waits for it. `await
     * saver.setup()` reports a wrong URL right away.
     */
    static fromConnString(url: string, options?: HeddleSaverOptions): HeddleSaver {
        return new HeddleSaver(new HeddleStore(url), options, true);
    }

    /** Resolves when the database is open and ready; rejects with the error otherwise. */
    async setup(): Promise<void> {
        await this.#store.ready();
    }

    /** Waits for pending operations; closes the store if `fromConnString` opened it. */
    async close(): Promise<void> {
        if (this.#ownsStore) await this.#store.close();
    }

    async [Symbol.asyncDispose](): Promise<void> {
        await this.close();
    }

    // ---- the checkpointer contract -------------------------------------------

    override getNextVersion(current: string | undefined): string {
        return nextVersion(current) as string;
    }

    async getTuple(config: RunnableConfig): Promise<CheckpointTuple | undefined> {
        const key = this.#key(config);
        if (key === undefined) return undefined;
        const tuple = await native.get(await this.#store.handle(), key);
        return tuple === undefined ? undefined : this.#tuple(tuple);
    }

    async *list(
        config: RunnableConfig,
        options?: CheckpointListOptions,
    ): AsyncGenerator<CheckpointTuple> {
        for await (const tuple of this.#list(config, options, false))
            yield await this.#tuple(tuple);
    }

    async put(
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        newVersions: ChannelVersions,
    ): Promise<RunnableConfig> {
        const { configurable } = config;
        if (configurable === undefined) throw missing("put a checkpoint", "configurable");
        const thread = threadOf(configurable, "put a checkpoint");
        const ns = text(configurable.checkpoint_ns ?? "", "checkpoint_ns");
        const id = text(checkpoint.id, "the id of a checkpoint");
        const parent = text(getCheckpointId(config), "checkpoint_id");
        const { channel_values, ...header } = checkpoint;
        const store = this.#store.handle();
        // Everything is serialized before the first await: the caller keeps changing its objects.
        const versions = [JSON.stringify(header), JSON.stringify(newVersions)] as const;
        const values = this.#dumpValues(channel_values ?? {}, newVersions);
        const [opened, json, data] = await Promise.all([store, this.#json(metadata), values]);
        const texts = [this.#principal, thread, ns, id, parent, versions[0], json, versions[1]];
        await native.put(opened, texts, data);
        return {
            configurable: {
                thread_id: configurable.thread_id,
                checkpoint_ns: ns,
                checkpoint_id: id,
            },
        };
    }

    async putWrites(config: RunnableConfig, writes: PendingWrite[], taskId: string): Promise<void> {
        const configurable = config.configurable ?? {};
        const thread = threadOf(configurable, "put writes");
        const id = getCheckpointId(config);
        if (!id) throw missing("put writes", "checkpoint_id");
        const ns = text(configurable.checkpoint_ns ?? "", "checkpoint_ns");
        const task = text(taskId, "the id of a task");
        const texts = [this.#principal, thread, ns, text(id, "checkpoint_id"), task, ""];
        const store = this.#store.handle();
        const [opened, data] = await Promise.all([store, this.#dumpWrites(writes)]);
        await native.putWrites(opened, texts, data);
    }

    async deleteThread(threadId: string): Promise<void> {
        await native.deleteThread(await this.#store.handle(), [
            this.#principal,
            threadText(threadId),
        ]);
    }

    override async getDeltaChannelHistory(options: {
        config: RunnableConfig;
        channels: string[];
    }): Promise<Record<string, DeltaChannelHistory>> {
        const channels = options.channels.map((channel) => text(channel, "a channel"));
        const key = this.#key(options.config);
        const found =
            key === undefined || channels.length === 0
                ? []
                : await native.deltaHistory(await this.#store.handle(), key, channels);
        const result: Record<string, DeltaChannelHistory> = {};
        for (const [i, channel] of channels.entries()) {
            const history: DeltaChannelHistory = {
                writes: await this.#writes(found[i * 2 + 1] ?? []),
            };
            const [, type, data] = found[i * 2] ?? [];
            if (type !== undefined) history.seed = await this.#load(type as string, data as Data);
            setOwn(result, channel, history);
        }
        return result;
    }

    // ---- beyond the contract -------------------------------------------------

    /** As list(), without values and writes: much cheaper for long histories. */
    async *listHeaders(
        config: RunnableConfig,
        options?: CheckpointListOptions,
    ): AsyncGenerator<CheckpointHeader> {
        for await (const tuple of this.#list(config, options, true))
            yield await this.#header(tuple);
    }

    /** The threads of this saver's principal, in byte order of their ids. */
    async *listThreads(options: ListThreadsOptions = {}): AsyncGenerator<ThreadInfo> {
        let after = text(options.after ?? "", "after");
        let left = options.limit ?? Infinity;
        while (left > 0) {
            const most = Math.min(left, THREADS_PAGE);
            const found = await native.threads(
                await this.#store.handle(),
                [this.#principal, after],
                null,
                most,
            );
            for (let i = 0; i < found.length; i += 3) {
                yield threadInfo(
                    found[i] as string,
                    found[i + 1] as number,
                    found[i + 2] as number,
                );
            }
            if (found.length < most * 3) return;
            after = found[found.length - 3] as string;
            left -= most;
        }
    }

    /** The storage of a thread; all zero if it does not exist. */
    async threadUsage(threadId: string): Promise<ThreadUsage> {
        const texts = [this.#principal, threadText(threadId)];
        const [checkpoints, writes, chunks, bytes] = await native.usage(
            await this.#store.handle(),
            texts,
        );
        return { checkpoints, writes, chunks, bytes };
    }

    /** Deletes the checkpoints whose metadata has one of these run ids, in any thread. */
    async deleteForRuns(runIds: readonly string[]): Promise<void> {
        const runs = runIds.map((run) => text(run, "the id of a run"));
        await native.deleteForRuns(await this.#store.handle(), [this.#principal], runs);
    }

    /** Copies a thread, with all of its data, to an unused id. */
    async copyThread(sourceThreadId: string, targetThreadId: string): Promise<void> {
        const texts = [this.#principal, threadText(sourceThreadId), threadText(targetThreadId)];
        await native.copyThread(await this.#store.handle(), texts);
    }

    /** Shortens the history of threads. */
    async prune(threadIds: readonly string[], options: PruneOptions = {}): Promise<void> {
        const { strategy = "keep_latest" } = options;
        if (strategy !== "keep_latest" && strategy !== "delete") {
            throw new TypeError(`prune: unknown strategy ${String(strategy)}`);
        }
        const threads = threadIds.map(threadText);
        const number = strategy === "delete" ? 1 : 0;
        await native.prune(await this.#store.handle(), [this.#principal], threads, number);
    }

    // ---- keys and listings ---------------------------------------------------

    /** The requested checkpoint; undefined when no thread is named. */
    #key(config: RunnableConfig): Key | undefined {
        const { thread_id, checkpoint_ns } = config.configurable ?? {};
        if (thread_id === undefined || thread_id === null) return undefined;
        const ns = text(checkpoint_ns ?? "", "checkpoint_ns");
        return [
            this.#principal,
            threadText(thread_id),
            ns,
            text(getCheckpointId(config), "checkpoint_id"),
        ];
    }

    /** Opens the listing when the first tuple is read and closes it when the consumer stops. */
    async *#list(
        config: RunnableConfig,
        options: CheckpointListOptions | undefined,
        onlyHeaders: boolean,
    ): AsyncGenerator<NativeTuple> {
        const limit = options?.limit === undefined ? -1 : Math.trunc(options.limit);
        if (options?.limit !== undefined && !(limit > 0)) return;
        const texts = await settled(this.#query(config, options, onlyHeaders));
        const store = await this.#store.handle();
        const list = await native.listOpen(store, texts, null, limit);
        let isDone = false;
        try {
            for (let most = limit > 0 ? Math.min(limit, LARGEST_PAGE) : FIRST_PAGE; !isDone;) {
                const [tuples, isLast] = await native.listNext(store, null, null, most, list);
                isDone = isLast;
                yield* tuples;
                most = Math.min(most * 2, LARGEST_PAGE);
            }
        } finally {
            await closeList(store, list);
        }
    }

    #query(
        config: RunnableConfig,
        options: CheckpointListOptions | undefined,
        onlyHeaders: boolean,
    ) {
        const { thread_id, checkpoint_ns } = config.configurable ?? {};
        const before: unknown = options?.before?.configurable?.checkpoint_id;
        const filter = options?.filter ?? {};
        const id = getCheckpointId(config);
        return [
            this.#principal,
            thread_id === undefined || thread_id === null ? null : threadText(thread_id),
            checkpoint_ns === undefined || checkpoint_ns === null
                ? null
                : text(checkpoint_ns, "checkpoint_ns"),
            id ? text(id, "checkpoint_id") : null,
            before ? text(before, "before") : null,
            Object.keys(filter).length > 0 ? this.#json(filter) : "",
            onlyHeaders ? "headers" : null,
        ] as const;
    }

    // ---- reading -------------------------------------------------------------

    async #header(tuple: NativeTuple): Promise<CheckpointHeader> {
        const [thread, ns, id, parent, checkpoint, metadata] = tuple;
        const header = {
            config: configOf(thread, ns, id),
            checkpoint: JSON.parse(checkpoint) as Checkpoint,
            metadata: (await this.#canonical.load(CANONICAL, metadata)) as CheckpointMetadata,
        };
        return parent === "" ? header : { ...header, parentConfig: configOf(thread, ns, parent) };
    }

    async #tuple(tuple: NativeTuple): Promise<CheckpointTuple> {
        const [, , , , , , values, writes, sends] = tuple;
        const { checkpoint: header, ...rest } = await this.#header(tuple);
        const channelValues: Fields = {};
        for (let i = 0; i < values.length; i += 3) {
            const loaded = this.#load(values[i + 1] as string, values[i + 2] as Data);
            setOwn(
                channelValues,
                values[i] as string,
                loaded instanceof Promise ? await loaded : loaded,
            );
        }
        const checkpoint: Checkpoint = { ...header, channel_values: channelValues };
        checkpoint.channel_versions ??= {};
        checkpoint.versions_seen ??= {};
        if (sends.length > 0)
            migrateSends(checkpoint, await this.#writes(sends), this.getNextVersion(undefined));
        return { ...rest, checkpoint, pendingWrites: await this.#writes(writes) };
    }

    async #writes(writes: readonly Data[]): Promise<CheckpointPendingWrite[]> {
        const result: CheckpointPendingWrite[] = [];
        for (let i = 0; i < writes.length; i += 4) {
            const [task, channel, type, data] = writes.slice(i, i + 4) as [
                string,
                string,
                string,
                Data,
            ];
            const loaded = this.#load(type, data);
            const value: unknown = loaded instanceof Promise ? await loaded : loaded;
            addWrite(result, task, channel, type, value);
        }
        return result;
    }

    #load(type: string, data: Data): unknown {
        if (this.serde instanceof CanonicalSerializer) return this.serde.load(type, data);
        return this.serde.loadsTyped(type, data) as Promise<unknown>;
    }

    // ---- writing -------------------------------------------------------------

    /** channel, type, data, … of the channels that have changed and have a value. */
    #dumpValues(
        values: Fields,
        versions: ChannelVersions,
    ): readonly Data[] | Promise<readonly Data[]> {
        const result: Pending[] = [];
        for (const channel of Object.keys(versions)) {
            if (!Object.hasOwn(values, channel)) continue;
            this.#dump(result, channel, values[channel]);
        }
        return flatten(result);
    }

    #dumpWrites(writes: readonly PendingWrite[]): readonly Data[] | Promise<readonly Data[]> {
        const result: Pending[] = [];
        for (const [channel, value] of writes) this.#dump(result, channel, value);
        return flatten(result);
    }

    #dump(result: Pending[], channel: string, value: unknown): void {
        text(channel, "a channel");
        if (this.serde instanceof CanonicalSerializer) {
            result.push([channel, this.serde.dump(value, hintOf(channel))]);
        } else {
            result.push([channel, copied(this.serde.dumpsTyped(ownBytes(value)))]);
        }
    }

    /** Metadata and filters: JSON for any serializer, so that the store can search them. */
    #json(value: unknown): string | Promise<string> {
        const dumped = this.#canonical.dump(value ?? {}, { dropUndefined: true });
        return dumped instanceof Promise ? dumped.then(jsonOf) : jsonOf(dumped);
    }
}

type Pending = readonly [channel: string, dumped: Dumped | Promise<Dumped>];

function flatten(pending: readonly Pending[]): readonly Data[] | Promise<readonly Data[]> {
    if (pending.some(([, dumped]) => dumped instanceof Promise)) return flattenLater(pending);
    return pending.flatMap(([channel, dumped]) => dataOf(channel, dumped as Dumped));
}

async function flattenLater(pending: readonly Pending[]): Promise<readonly Data[]> {
    const dumped = await Promise.all(pending.map(([, each]) => each));
    return pending.flatMap(([channel], i) => dataOf(channel, dumped[i] as Dumped));
}

function dataOf(channel: string, [type, data]: Dumped): Data[] {
    return [
        channel,
        type,
        typeof data === "string" && data.length > LONG_TEXT ? Buffer.from(data) : data,
    ];
}

/** Some serializers return their input bytes, which the owner may change. */
function ownBytes(value: unknown): unknown {
    if (!(value instanceof Uint8Array)) return value;
    return Buffer.isBuffer(value) ? Buffer.from(value) : value.slice();
}

/** Another serializer may reuse its bytes. */
async function copied(dumped: Promise<[string, Uint8Array]>): Promise<Dumped> {
    const [type, data] = await dumped;
    return [type, typeof data === "string" ? data : new Uint8Array(data)];
}

function jsonOf([type, data]: Dumped): string {
    if (type !== CANONICAL) throw new TypeError("metadata and filters must be plain objects");
    return data as string;
}

async function settled<T extends string | null>(
    texts: readonly (T | Promise<T>)[],
): Promise<readonly T[]> {
    return Promise.all(texts);
}

async function closeList(store: NativeStore, list: NativeList): Promise<void> {
    try {
        await native.listClose(store, null, null, 0, list);
    } catch {
        // The store was closed meanwhile, and the listing with it.
    }
}

function configOf(thread_id: string, checkpoint_ns: string, checkpoint_id: string): RunnableConfig {
    return { configurable: { thread_id, checkpoint_ns, checkpoint_id } };
}

function threadInfo(threadId: string, created: number, updated: number): ThreadInfo {
    return { threadId, createdAt: new Date(created / 1000), updatedAt: new Date(updated / 1000) };
}

/** A string that survives UTF-8 conversion: two ids must not become one. */
function text(value: unknown, what: string): string {
    if (typeof value !== "string")
        throw new TypeError(`${what} must be a string, not ${typeof value}`);
    if (!value.isWellFormed()) throw new TypeError(`${what} contains an unpaired surrogate`);
    return value;
}

/** Accepts numbers, because JavaScript programs often number their threads. */
function threadText(value: unknown): string {
    return text(typeof value === "number" ? String(value) : value, "thread_id");
}

function threadOf(configurable: Fields, what: string): string {
    const { thread_id } = configurable;
    if (thread_id === undefined || thread_id === null || thread_id === "")
        throw missing(what, "thread_id");
    return threadText(thread_id);
}

function missing(what: string, name: string): Error {
    return new Error(
        `cannot ${what}: the config has no ${name}. Pass one, as in ` +
            `graph.invoke(input, { configurable: { thread_id: "my-thread" } })`,
    );
}

function principalOf(principal = ""): string {
    if (text(principal, "principal").includes(":"))
        throw new TypeError("principal must not contain ':'");
    return principal;
}
