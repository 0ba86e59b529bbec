/** Checkpoints, writes and items in memory, behind the worker's operations. */
import { InMemoryStore, type Operation } from "@langchain/langgraph-checkpoint";
import { member, type Blob, type Fields, type Frame } from "../../src/runtime/frame.js";

type Value = readonly [type: string, bytes: Buffer];

interface Row {
    readonly id: string;
    readonly ns: string;
    readonly parent: string | null;
    readonly checkpoint: Buffer;
    readonly metadata: Buffer;
}

interface Write {
    readonly task: string;
    readonly path: string;
    readonly idx: number;
    readonly channel: string;
    readonly value: Value;
}

const SPECIAL: Readonly<Record<string, number>> = {
    __error__: -1,
    __scheduled__: -2,
    __interrupt__: -3,
    __resume__: -4,
};

interface Answer {
    readonly head: Fields;
    readonly blobs: Blob[];
}

export class StubStore {
    readonly #rows = new Map<string, Map<string, Row>>();
    readonly #values = new Map<string, Value>();
    readonly #writes = new Map<string, Map<string, Write>>();

    carryOut(thread: string, frame: Frame): Answer {
        const operation = String(frame.head.op);
        switch (operation) {
            case "get":
                return this.#get(thread, frame.head);
            case "list":
                return this.#list(thread, frame.head);
            case "put":
                return this.#put(thread, frame);
            case "writes":
                return this.#putWrites(thread, frame);
            default:
                return { head: {}, blobs: [] };
        }
    }

    /** The checkpoints of a thread, the newest first. */
    checkpoints(
        thread: string,
        ns = "",
    ): { id: string; metadata: Fields; checkpoint: Fields; values: Fields }[] {
        return this.#sorted(thread, ns).map((row) => ({
            id: row.id,
            metadata: JSON.parse(row.metadata.toString()) as Fields,
            checkpoint: JSON.parse(row.checkpoint.toString()) as Fields,
            values: Object.fromEntries(
                this.#valuesOf(thread, row).map(([channel, [, bytes]]) => [
                    channel,
                    bytes.toString(),
                ]),
            ),
        }));
    }

    namespaces(thread: string): string[] {
        return [...this.#rows.keys()]
            .filter((key) => key.startsWith(`${thread}\0`))
            .map((key) => key.split("\0")[1]!);
    }

    writes(thread: string, ns: string, id: string): Write[] {
        const found = [...(this.#writes.get([thread, ns, id].join("\0"))?.values() ?? [])];
        return found.sort((a, b) => (a.task < b.task ? -1 : a.task > b.task ? 1 : a.idx - b.idx));
    }

    #sorted(thread: string, ns: string): Row[] {
        return [...(this.#rows.get(`${thread}\0${ns}`)?.values() ?? [])].sort((a, b) =>
            a.id < b.id ? 1 : -1,
        );
    }

    #get(thread: string, { ns, id }: Fields): Answer {
        const rows = this.#sorted(thread, ns as string);
        const row = id ? rows.find((each) => each.id === id) : rows[0];
        if (row === undefined) return { head: { tuple: null }, blobs: [] };
        const blobs: Blob[] = [];
        return { head: { tuple: this.#tuple(thread, row, blobs) }, blobs };
    }

    #list(thread: string, { ns, before, limit, id }: Fields): Answer {
        const namespaces = ns === null ? this.namespaces(thread) : [ns as string];
        const all = namespaces
            .flatMap((each) => this.#sorted(thread, each))
            .sort((a, b) => (a.id < b.id ? 1 : -1));
        const found = all.filter(
            (row) => (!before || row.id < (before as string)) && (!id || row.id === id),
        );
        const page = found.slice(0, Math.min((limit as number | null) ?? Infinity, 2));
        const blobs: Blob[] = [];
        const tuples = page.map((row) => this.#tuple(thread, row, blobs));
        return { head: { tuples, more: found.length > page.length }, blobs };
    }

    #valuesOf(thread: string, row: Row): [string, Value][] {
        const { channel_versions } = JSON.parse(row.checkpoint.toString()) as {
            channel_versions: Fields;
        };
        const result: [string, Value][] = [];
        for (const [channel, version] of Object.entries(channel_versions)) {
            const value = this.#values.get([thread, row.ns, channel, version].join("\0"));
            if (value !== undefined) result.push([channel, value]);
        }
        return result;
    }

    #tuple(thread: string, row: Row, blobs: Blob[]): Fields {
        const add = (bytes: Buffer) => blobs.push(bytes) - 1;
        const checkpoint = { $blob: add(row.checkpoint) };
        const metadata = { $blob: add(row.metadata) };
        const values = this.#valuesOf(thread, row).map(([channel, [type, bytes]]) => [
            channel,
            type,
            add(bytes),
        ]);
        const writes = this.writes(thread, row.ns, row.id).map(
            ({ task, path, idx, channel, value }) => {
                return [task, path, idx, channel, value[0], add(value[1])];
            },
        );
        return {
            ns: row.ns,
            id: row.id,
            parent: row.parent,
            checkpoint,
            metadata,
            values,
            writes,
            sends: [],
        };
    }

    #put(thread: string, frame: Frame): Answer {
        const { ns, id, parent, new_versions, values } = frame.head as {
            ns: string;
            id: string;
            parent: string | null;
            new_versions: Fields;
            values: [string, string, number][];
        };
        const text = (name: string) => Buffer.from(JSON.stringify(member(frame, name)));
        const key = `${thread}\0${ns}`;
        if (!this.#rows.has(key)) this.#rows.set(key, new Map());
        this.#rows.get(key)!.set(id, {
            id,
            ns,
            parent,
            checkpoint: text("checkpoint"),
            metadata: text("metadata"),
        });
        for (const [channel, type, blob] of values) {
            this.#values.set([thread, ns, channel, new_versions[channel]].join("\0"), [
                type,
                Buffer.from(frame.blobs[blob]!),
            ]);
        }
        return { head: {}, blobs: [] };
    }

    #putWrites(thread: string, frame: Frame): Answer {
        const { ns, id, task_id, values } = frame.head as {
            ns: string;
            id: string;
            task_id: string;
            values: [string, string, number][];
        };
        const key = [thread, ns, id].join("\0");
        if (!this.#writes.has(key)) this.#writes.set(key, new Map());
        const rows = this.#writes.get(key)!;
        for (const [i, [channel, type, blob]] of values.entries()) {
            const idx = SPECIAL[channel] ?? i;
            const row = `${task_id}\0${idx}`;
            if (idx >= 0 && rows.has(row)) continue;
            rows.set(row, {
                task: task_id,
                path: "",
                idx,
                channel,
                value: [type, Buffer.from(frame.blobs[blob]!)],
            });
        }
        return { head: {}, blobs: [] };
    }
}

/** LangGraph's own store, behind the operation `items`. */
export class StubItems {
    readonly #store = new InMemoryStore();

    async carryOut(frame: Frame): Promise<Answer> {
        const results: unknown[] = [];
        for (const op of member(frame, "ops") as Fields[])
            results.push(wire((await this.#store.batch([operation(op)]))[0]));
        return { head: { results }, blobs: [] };
    }
}

function operation(op: Fields): Operation {
    const { namespace, key, value, limit, offset } = op as {
        namespace: string[];
        key: string;
        value: Fields;
        limit: number;
        offset: number;
    };
    switch (op.op) {
        case "put":
            return { namespace, key, value };
        case "get":
            return { namespace, key };
        case "search":
            return { namespacePrefix: op.namespace_prefix as string[], limit, offset };
        default:
            return { matchConditions: [], limit, offset };
    }
}

function wire(result: unknown): unknown {
    if (Array.isArray(result)) return result.map(wire);
    if (typeof result !== "object" || result === null || !("createdAt" in result))
        return result ?? null;
    const { namespace, key, value, createdAt, updatedAt } = result as Fields;
    return { namespace, key, value, created_at: createdAt, updated_at: updatedAt };
}
