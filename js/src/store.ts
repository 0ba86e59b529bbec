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
    /** Stored bytes, keys included, before the database's own overhead. */
    readonly bytes: number;
}

/**
 * A database of checkpoints. One may serve any number of savers, for instance
 * one for each user (`principal`); close it when none of them is used any more.
 *
 * Opening starts at once and does not block. A store that cannot be opened
 * rejects `ready()` and every operation with the reason.
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
        // Reported by whoever uses the store, not as an unhandled rejection.
        this.#opening.catch(() => undefined);
    }

    /** Opens a store, or rejects with the reason why it cannot. */
    static async open(url: string): Promise<HeddleStore> {
        const store = new HeddleStore(url);
        await store.ready();
        return store;
    }

    /** Resolves when the store is open. */
    async ready(): Promise<void> {
        await this.#opening;
    }

    /** Waits for what is under way, then closes. More calls do nothing. */
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

    /** Gives free space back to the file system (SQLite). May take long. */
    async compact(): Promise<void> {
        await native.compact(await this.handle());
    }

    /** Reads everything and rejects with the first damage found. */
    async check(): Promise<void> {
        await native.check(await this.handle());
    }

    /** @internal The addon's store: at once when it is open, a promise before. */
    handle(): NativeStore | Promise<NativeStore> {
        if (this.#closing !== undefined) throw closed();
        return this.#native ?? this.#opening;
    }

    /** Says nothing of where the data is: savers end up in logs and traces. */
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
