/** The addon: typed declarations of native/operations.c. */
import { constants } from "node:os";
import { fileURLToPath } from "node:url";

declare const handle: unique symbol;

/** An open store, and an open listing of one, inside the addon. */
export type NativeStore = { readonly [handle]: "store" };
export type NativeList = { readonly [handle]: "list" };

type Text = string | null;

/** Bytes of given values are used in place until the promise is settled. */
export type Data = string | Uint8Array;

/** thread, ns, id, parent, checkpoint, metadata, values, writes, sends */
export type NativeTuple = readonly [
    thread: string,
    ns: string,
    id: string,
    parent: string,
    checkpoint: string,
    metadata: string,
    values: readonly Data[],
    writes: readonly Data[],
    sends: readonly Data[],
];

export interface Native {
    readonly version: string;
    open(url: string): Promise<NativeStore>;
    close(store: NativeStore): Promise<void>;
    closeAll(): void;
    put(store: NativeStore, texts: readonly Text[], values: readonly Data[]): Promise<void>;
    putWrites(store: NativeStore, texts: readonly Text[], values: readonly Data[]): Promise<void>;
    get(store: NativeStore, texts: readonly Text[]): Promise<NativeTuple | undefined>;
    listOpen(
        store: NativeStore,
        texts: readonly Text[],
        items: null,
        limit: number,
    ): Promise<NativeList>;
    listNext(
        store: NativeStore,
        texts: null,
        items: null,
        most: number,
        list: NativeList,
    ): Promise<readonly [tuples: readonly NativeTuple[], isLast: boolean]>;
    listClose(
        store: NativeStore,
        texts: null,
        items: null,
        number: 0,
        list: NativeList,
    ): Promise<void>;
    deltaHistory(
        store: NativeStore,
        texts: readonly Text[],
        channels: readonly string[],
    ): Promise<readonly (readonly Data[])[]>;
    threads(
        store: NativeStore,
        texts: readonly Text[],
        items: null,
        limit: number,
    ): Promise<readonly (string | number)[]>;
    usage(
        store: NativeStore,
        texts: readonly Text[],
    ): Promise<readonly [number, number, number, number]>;
    deleteThread(store: NativeStore, texts: readonly Text[]): Promise<void>;
    deleteForRuns(
        store: NativeStore,
        texts: readonly Text[],
        runs: readonly string[],
    ): Promise<void>;
    copyThread(store: NativeStore, texts: readonly Text[]): Promise<void>;
    prune(
        store: NativeStore,
        texts: readonly Text[],
        threads: readonly string[],
        strategy: 0 | 1,
    ): Promise<void>;
    compact(store: NativeStore): Promise<void>;
    check(store: NativeStore): Promise<void>;
}

/**
 * Node exports the symbols of the OpenSSL (and, in newer versions, the SQLite) it was built with;
 * the addon must use those of the libraries it is linked to.
 */
function load(): Native {
    const { RTLD_NOW, RTLD_DEEPBIND } = constants.dlopen as {
        RTLD_NOW: number;
        RTLD_DEEPBIND?: number;
    };
    const module = { exports: {} };
    const path = fileURLToPath(new URL("../build/heddle.node", import.meta.url));
    process.dlopen(module, path, RTLD_NOW | (RTLD_DEEPBIND ?? 0));
    return module.exports as Native;
}

export const native = load();

// Pending operations finish when the process ends, and no thread of a store outlives it.
process.on("exit", () => native.closeAll());
