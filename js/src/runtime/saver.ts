/** The checkpointer of a run: the server stores everything. */
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
} from "@langchain/langgraph-checkpoint";
import type { RunnableConfig } from "@langchain/core/runnables";
import { CANONICAL, CanonicalSerializer, type Dumped } from "../canonical.js";
import { setOwn } from "../decode.js";
import { addWrite, hintOf, migrateSends } from "../tuples.js";
import { nextVersion } from "../version.js";
import type { Blob, Fields } from "./frame.js";
import type { IncomingCall, Link, Message } from "./link.js";

/** The index of a blob; the text itself when a frame would have too many blobs. */
type BlobRef = number | string;
type StoredValue = readonly [channel: string, type: string, blob: BlobRef];
type StoredWrite = readonly [
    task: string,
    path: string,
    idx: number,
    channel: string,
    type: string,
    blob: BlobRef,
];

/** The number of blobs used in a frame; slightly below the limit. */
const MAX_BLOBS = 4000;

/** A tuple in the format of the protocol. */
interface WireTuple {
    readonly ns: string;
    readonly id: string;
    readonly parent: string | null;
    readonly checkpoint: { readonly $blob: number };
    readonly metadata: { readonly $blob: number };
    readonly values: readonly StoredValue[];
    readonly writes: readonly StoredWrite[];
    readonly sends?: readonly StoredWrite[];
}

/** Shared by all runs: it has no state. */
const serializer = new CanonicalSerializer();

/** Maps a saver to its call: LangGraph passes the saver to every task. */
const CALL = Symbol.for("heddle.runtime.call");

/** The server call that a task belongs to, by its configuration. */
export function callOf(
    config: { readonly configurable?: Fields } | undefined,
): IncomingCall | undefined {
    const saver = config?.configurable?.__pregel_checkpointer as
        { readonly [CALL]?: IncomingCall } | undefined;
    return saver?.[CALL];
}

export class RemoteSaver extends BaseCheckpointSaver<string> {
    readonly [CALL]: IncomingCall;
    readonly #link: Link;
    readonly #call: number;
    /** Unanswered calls. */
    readonly #pending = new Set<Promise<unknown>>();

    /** @param call the server call this saver belongs to */
    constructor(call: IncomingCall) {
        super(serializer);
        this[CALL] = call;
        this.#link = call.link;
        this.#call = call.id;
    }

    /** Resolves when all puts have been stored or have failed. */
    async settled(): Promise<void> {
        while (this.#pending.size > 0) {
            await Promise.allSettled([...this.#pending]);
            // LangGraph puts the next one after the promises that wait for this one have run.
            await new Promise((resolve) => setImmediate(resolve));
        }
    }

    override getNextVersion(current: string | undefined): string {
        return nextVersion(current) as string;
    }

    async getTuple(config: RunnableConfig): Promise<CheckpointTuple | undefined> {
        const { thread_id, checkpoint_ns: ns = "" } = config.configurable ?? {};
        if (thread_id === undefined || thread_id === null) return undefined;
        const id = getCheckpointId(config);
        const message = await this.#link.call({ op: "get", call: this.#call, ns, id });
        const tuple = message.head.tuple as WireTuple | null;
        return tuple === null ? undefined : this.#tuple(thread_id as string, tuple, message);
    }

    async *list(
        config: RunnableConfig,
        options: CheckpointListOptions = {},
    ): AsyncGenerator<CheckpointTuple> {
        const { thread_id, checkpoint_ns = null } = config.configurable ?? {};
        const { limit, filter = {} } = options;
        let left = limit ?? Infinity;
        let before: unknown = options.before?.configurable?.checkpoint_id ?? "";
        const query = {
            op: "list",
            call: this.#call,
            ns: checkpoint_ns,
            id: getCheckpointId(config),
            filter,
        };
        while (left > 0) {
            const message = await this.#link.call({
                ...query,
                before,
                limit: Number.isFinite(left) ? left : null,
            });
            const tuples = message.head.tuples as readonly WireTuple[];
            for (const tuple of tuples)
                yield await this.#tuple(thread_id as string, tuple, message);
            left -= tuples.length;
            if (message.head.more !== true || tuples.length === 0) return;
            before = tuples.at(-1)?.id;
        }
    }

    async put(
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        newVersions: ChannelVersions,
    ): Promise<RunnableConfig> {
        const { thread_id, checkpoint_ns: ns = "" } = threadOf(config, "put a checkpoint");
        const { channel_values, ...header } = checkpoint;
        const parent = getCheckpointId(config);
        // Everything is serialized before the first await: the caller keeps changing its objects.
        const first: Fields = {
            op: "put",
            call: this.#call,
            ns,
            id: checkpoint.id,
            parent: parent === "" ? null : parent,
        };
        const head = {
            ...first,
            checkpoint: { $blob: 0 },
            metadata: { $blob: 1 },
            new_versions: newVersions,
        };
        const json = serializer.dump(metadata, { dropUndefined: true });
        const texts = [["", [CANONICAL, JSON.stringify(header)]] as Pending, ["", json] as Pending];
        await this.#send(head, texts, changedValues(channel_values, newVersions));
        return { configurable: { thread_id, checkpoint_ns: ns, checkpoint_id: checkpoint.id } };
    }

    async putWrites(config: RunnableConfig, writes: PendingWrite[], taskId: string): Promise<void> {
        const { checkpoint_ns: ns = "" } = threadOf(config, "put writes");
        const id = getCheckpointId(config);
        if (id === "") throw new Error("cannot put writes: the config has no checkpoint_id");
        const head = { op: "writes", call: this.#call, ns, id, task_id: taskId, task_path: "" };
        await this.#send(
            head,
            [],
            writes.map(([channel, value]) => dumped(channel, value)),
        );
    }

    async deleteThread(): Promise<void> {
        throw new Error("a graph cannot delete threads: use the API of the server");
    }

    override async getDeltaChannelHistory(options: {
        config: RunnableConfig;
        channels: string[];
    }): Promise<Record<string, DeltaChannelHistory>> {
        const { config, channels } = options;
        if (channels.length === 0) return {};
        const { checkpoint_ns: ns = "" } = config.configurable ?? {};
        const message = await this.#link.call({
            op: "history",
            call: this.#call,
            ns,
            id: getCheckpointId(config),
            channels,
        });
        return historyOf(message, channels);
    }

    async #send(
        head: Fields,
        texts: readonly Pending[],
        values: readonly Pending[],
    ): Promise<void> {
        const all = [...texts, ...values];
        const ready = all.some(([, each]) => each instanceof Promise)
            ? await settle(all)
            : (all as readonly Settled[]);
        const blobs: Blob[] = texts.map((_, i) => (ready[i] as Settled)[1][1]);
        const stored = ready.slice(texts.length).map(([channel, [type, data]]): StoredValue => {
            if (typeof data === "string" && blobs.length >= MAX_BLOBS) return [channel, type, data];
            return [channel, type, blobs.push(data) - 1];
        });
        const answered = this.#link.call({ ...head, values: stored }, { blobs });
        this.#pending.add(answered);
        try {
            await answered;
        } finally {
            this.#pending.delete(answered);
        }
    }

    async #tuple(
        thread_id: string,
        tuple: WireTuple,
        { blobs }: Message,
    ): Promise<CheckpointTuple> {
        const channelValues: Fields = {};
        for (const [channel, type, blob] of tuple.values) {
            const value = load(type, blob, blobs);
            setOwn(channelValues, channel, value instanceof Promise ? await value : value);
        }
        const header = JSON.parse(
            blobAt(tuple.checkpoint.$blob, blobs).toString("utf8"),
        ) as Checkpoint;
        const checkpoint: Checkpoint = { ...header, channel_values: channelValues };
        checkpoint.channel_versions ??= {};
        checkpoint.versions_seen ??= {};
        const sends = tuple.sends ?? [];
        if (sends.length > 0)
            migrateSends(checkpoint, await writesOf(sends, blobs), this.getNextVersion(undefined));
        const found: CheckpointTuple = {
            config: configOf(thread_id, tuple.ns, tuple.id),
            checkpoint,
            metadata: (await load(CANONICAL, tuple.metadata.$blob, blobs)) as CheckpointMetadata,
            pendingWrites: await writesOf(tuple.writes, blobs),
        };
        return tuple.parent
            ? { ...found, parentConfig: configOf(thread_id, tuple.ns, tuple.parent) }
            : found;
    }
}

type Pending = readonly [channel: string, dumped: Dumped | Promise<Dumped>];
type Settled = readonly [channel: string, dumped: Dumped];

function settle(pending: readonly Pending[]): Promise<readonly Settled[]> {
    return Promise.all(
        pending.map(async ([channel, each]): Promise<Settled> => [channel, await each]),
    );
}

function dumped(channel: string, value: unknown): Pending {
    return [channel, serializer.dump(value, { ...hintOf(channel), wholeMessages: true })];
}

/** The channels that have changed and have a value. */
function changedValues(values: Fields, versions: ChannelVersions): Pending[] {
    const result: Pending[] = [];
    for (const channel of Object.keys(versions)) {
        if (Object.hasOwn(values, channel)) result.push(dumped(channel, values[channel]));
    }
    return result;
}

function load(type: string, blob: BlobRef, blobs: readonly Buffer[]): unknown {
    return serializer.load(type, typeof blob === "string" ? blob : blobAt(blob, blobs));
}

function blobAt(index: number, blobs: readonly Buffer[]): Buffer {
    const blob = blobs[index];
    if (blob === undefined) throw new Error("the server's response lacks a value");
    return blob;
}

async function writesOf(
    writes: readonly StoredWrite[],
    blobs: readonly Buffer[],
): Promise<CheckpointPendingWrite[]> {
    const result: CheckpointPendingWrite[] = [];
    for (const [task, , , channel, type, blob] of writes) {
        const value = load(type, blob, blobs);
        addWrite(result, task, channel, type, value instanceof Promise ? await value : value);
    }
    return result;
}

interface WireHistory {
    readonly seed: readonly [type: string, blob: BlobRef] | null;
    readonly writes: readonly (readonly [
        task: string,
        path: string,
        idx: number,
        type: string,
        blob: BlobRef,
    ])[];
}

async function historyOf({ head, blobs }: Message, channels: readonly string[]) {
    const found = head.channels as Readonly<Record<string, WireHistory>>;
    const result: Record<string, DeltaChannelHistory> = {};
    for (const channel of channels) {
        const { seed = null, writes = [] } = Object.hasOwn(found, channel)
            ? (found[channel] as WireHistory)
            : {};
        const history: DeltaChannelHistory = { writes: [] };
        for (const [task, , , type, blob] of writes) {
            const value = load(type, blob, blobs);
            addWrite(
                history.writes,
                task,
                channel,
                type,
                value instanceof Promise ? await value : value,
            );
        }
        if (seed !== null) history.seed = await load(seed[0], seed[1], blobs);
        setOwn(result, channel, history);
    }
    return result;
}

function configOf(thread_id: string, checkpoint_ns: string, checkpoint_id: string): RunnableConfig {
    return { configurable: { thread_id, checkpoint_ns, checkpoint_id } };
}

function threadOf(config: RunnableConfig, what: string): Fields {
    const { configurable } = config;
    if (!configurable?.thread_id) throw new Error(`cannot ${what}: the config has no thread_id`);
    return configurable;
}
