/**
 * An open store: the thin layer over the addon that savers share.
 */
import { native, type NativeStore } from "./native.js";

export interface ThreadInfo {
    readonly threadId: string;
    readonly createdAt: Date;
    /** When the last checkpoint was put. */
    readonly updatedAt: Date;
}

export interface ThreadUsage {
    readonly checkpoints: number;
    readonly writes: number;
    readonly chunks: number;
    /** Stored bytes, including keys, before the database's own overhead. */
    readonly bytes: number;
}

/**
 * A database of checkpoints. It may serve any number of savers, for instance one per user
 * (`principal`); close it when none of them is in use.
 *
 * Opening starts at once and does not block. A store that cannot be opened rejects `ready()` and
 * every operation with the reason.
 */
export class HeddleStore {
    readonly #opening: Promise<NativeStore>;
    #native: NativeStore | undefined;
    #closing: Promise<void> | undefined;

    /**
     * @param url `memory:`, `sqlite:PATH` or `postgresql://…`, with parameters such as
     * `?durability=relaxed` appended
     */
    constructor(url: string) {
        this.#opening = native.open(requireUrl(url)).then((opened) => (this.#native = opened));
        // Reported by the operations on the store, not as an unhandled rejection.
        this.#opening.catch(() => undefined);
    }

    /** Opens a store, or rejects with the error. */
    static async open(url: string): Promise<HeddleStore> {
        const store = new HeddleStore(url);
        await store.ready();
        return store;
    }

    /** Resolves when the store is open. */
    async ready(): Promise<void> {
        await this.#opening;
    }

    /** Waits for pending operations, then closes. Further calls have no effect. */
    close(): Promise<void> {
        this.#closing ??= this.#opening.then(
            (opened) => native.close(opened),
            () => undefined,
        );
        return this.#closing;
    }

    async [Symbol.asyncDispose](): Promise<void> {
        await this.close();
    }

    /** Returns free space to the file system (SQLite). May take long. */
    async compact(): Promise<void> {
        await native.compact(await this.handle());
    }

    /** Reads everything and rejects with the first damage found. */
    async check(): Promise<void> {
        await native.check(await this.handle());
    }

    /** @internal The addon's store: synchronously when it is open, otherwise a promise. */
    handle(): NativeStore | Promise<NativeStore> {
        if (this.#closing !== undefined) throw closed();
        return this.#native ?? this.#opening;
    }

    /** Omits the URL of the data: savers end up in logs and traces. */
    toJSON(): string {
        return "[HeddleStore]";
    }
}

function requireUrl(url: unknown): string {
    if (typeof url !== "string") throw new TypeError("the URL of a Heddle store must be a string");
    if (url.includes("\0")) throw new TypeError("the URL of a Heddle store must not contain NUL");
    return url;
}

function closed(): Error {
    return Object.assign(new Error("the store is closed"), { code: "HEDDLE_ECLOSED" });
}
