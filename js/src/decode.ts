/**
 * Reads the canonical encoding (docs/encoding.md): JSON.parse, then one walk that replaces records,
 * in place where nothing has to be replaced.
 */
import { isUtf8 } from "node:buffer";
import { DeltaSnapshot } from "@langchain/langgraph-checkpoint";
import { MAX_DEPTH } from "./encode.js";
import { flag, ForeignValue, markKind, rememberDateText } from "./foreign.js";
import { createMessage, messageClassByType } from "./messages.js";

type Fields = Record<string, unknown>;

/** The stock serializer's value for its own bytes. */
export type LoadForeign = (type: string, data: Uint8Array) => Promise<unknown>;

/**
 * The tag under which this runtime's own serializer writes values that the encoding cannot express.
 */
const OWN_TYPE = "json";

/** Thrown by the walk at a record that only the asynchronous stock serializer can read. */
class NeedsForeign extends Error {}

/** The value of a text, or a promise when a part of it needs the stock serializer. */
export function decode(data: string | Uint8Array, loadForeign: LoadForeign): unknown {
    const text = typeof data === "string" ? data : utf8(data);
    try {
        return new Reviver().value(JSON.parse(text), 0);
    } catch (error) {
        if (error instanceof NeedsForeign) return decodeForeign(text, loadForeign);
        throw error;
    }
}

async function decodeForeign(text: string, loadForeign: LoadForeign): Promise<unknown> {
    // The first walk has already replaced part of its tree: parse once more.
    const tree: unknown = JSON.parse(text);
    const records: Fields[] = [];
    collectForeign(tree, records);
    const values = await Promise.all(
        records.map(({ v }) => loadForeign(OWN_TYPE, base64(v, "foreign"))),
    );
    return new Reviver(new Map(records.map((record, i) => [record, values[i]]))).value(tree, 0);
}

function collectForeign(tree: unknown, records: Fields[]): void {
    if (typeof tree !== "object" || tree === null) return;
    if (isOwnForeign(tree as Fields)) {
        records.push(tree as Fields);
        return;
    }
    for (const member of Object.values(tree)) collectForeign(member, records);
}

function isOwnForeign(record: Fields): boolean {
    return record.$ === "foreign" && record.type === OWN_TYPE;
}

class Reviver {
    readonly #foreign: ReadonlyMap<Fields, unknown> | undefined;

    constructor(foreign?: ReadonlyMap<Fields, unknown>) {
        this.#foreign = foreign;
    }

    value(value: unknown, depth: number): unknown {
        if (typeof value !== "object" || value === null) return value;
        if (depth >= MAX_DEPTH) throw new Error(`nested deeper than ${MAX_DEPTH} levels`);
        if (Array.isArray(value)) return this.#array(value, depth + 1);
        const kind = (value as Fields).$;
        if (kind === undefined) return this.#members(value as Fields, depth + 1);
        if (typeof kind !== "string") throw new Error("`$` is not a string");
        return this.#record(kind, value as Fields, depth + 1);
    }

    #array(items: unknown[], depth: number): unknown[] {
        for (let i = 0; i < items.length; i++) {
            const item = items[i];
            if (typeof item !== "object" || item === null) continue;
            const value = this.value(item, depth);
            if (value !== item) items[i] = value;
        }
        return items;
    }

    #members(fields: Fields, depth: number): Fields {
        for (const key of Object.keys(fields)) {
            const member = fields[key];
            if (typeof member !== "object" || member === null) continue;
            const value = this.value(member, depth);
            if (value !== member) setOwn(fields, key, value);
        }
        return fields;
    }

    #record(kind: string, record: Fields, depth: number): unknown {
        switch (kind) {
            case "message":
                return this.#message(record, depth);
            case "send":
                return this.#send(record, depth);
            case "command":
                return this.#command(record, depth);
            case "interrupt":
                return this.#interrupt(record, depth);
            case "overwrite":
                return { __overwrite__: this.#member(record, "value", depth) };
            case "delta":
                return new DeltaSnapshot(this.#member(record, "value", depth));
            case "map":
                return this.#map(record, depth);
            case "set":
                return this.#set(record, depth);
            case "undefined":
                return undefined;
            case "foreign":
                return this.#foreignRecord(record);
            default:
                return scalar(kind, record);
        }
    }

    #member(record: Fields, name: string, depth: number): unknown {
        if (!Object.hasOwn(record, name)) throw missing(record, name);
        return this.value(record[name], depth);
    }

    #message(record: Fields, depth: number): unknown {
        const kind = messageClassByType(text(record, "type"));
        if (kind === undefined) return new ForeignValue(record);
        for (const key in record) {
            const member = record[key];
            if (typeof member === "object" && member !== null)
                record[key] = this.value(member, depth);
        }
        if (typeof record.content !== "string" && !Array.isArray(record.content))
            throw missing(record, "content");
        for (const name of kind.required) text(record, name);
        return createMessage(kind, record);
    }

    #send(record: Fields, depth: number): object {
        const send: Fields = {
            node: text(record, "node"),
            args: this.#member(record, "arg", depth),
        };
        if (Object.hasOwn(record, "timeout"))
            send.timeout = inMilliseconds(this.value(record.timeout, depth));
        return markKind(send, "send");
    }

    #interrupt(record: Fields, depth: number): object {
        const interrupt: Fields = {
            id: text(record, "id"),
            value: this.#member(record, "value", depth),
        };
        if (Object.hasOwn(record, "response_schema")) {
            interrupt.response_schema = this.value(record.response_schema, depth);
        }
        return markKind(interrupt, "interrupt");
    }

    /** The plain form that LangGraph accepts as a Command everywhere. */
    #command(record: Fields, depth: number): object {
        const command: Fields = { lg_name: "Command" };
        if (record.graph !== undefined) command.graph = record.graph;
        command.update = this.value(record.update, depth);
        command.resume = this.value(record.resume, depth);
        command.goto = this.value(record.goto ?? [], depth);
        return command;
    }

    #map(record: Fields, depth: number): object {
        const pairs = items(record).map((pair): [unknown, unknown] => {
            if (!Array.isArray(pair) || pair.length !== 2) throw missing(record, "items");
            return [this.value(pair[0], depth + 2), this.value(pair[1], depth + 2)];
        });
        if (record.map === true || !pairs.every(([key]) => typeof key === "string"))
            return new Map(pairs);
        const fields: Fields = {};
        for (const [key, value] of pairs) setOwn(fields, key as string, value);
        return fields;
    }

    #set(record: Fields, depth: number): object {
        const set = new Set(items(record).map((item) => this.value(item, depth + 1)));
        return record.frozen === true ? flag(set) : set;
    }

    #foreignRecord(record: Fields): unknown {
        text(record, "type");
        text(record, "v");
        if (!isOwnForeign(record)) {
            base64(record.v, "foreign");
            return new ForeignValue(record);
        }
        if (this.#foreign === undefined) throw new NeedsForeign();
        return this.#foreign.get(record);
    }
}

/** Records without values inside. Unknown kinds stay unchanged. */
function scalar(kind: string, record: Fields): unknown {
    switch (kind) {
        case "int":
            return integer(text(record, "v"));
        case "float":
            return float(text(record, "v"));
        case "bytes": {
            const data = new Uint8Array(base64(text(record, "v"), kind));
            return record.mutable === true ? flag(data) : data;
        }
        case "utf16":
            return Buffer.from(base64(text(record, "v"), kind)).toString("utf16le");
        case "datetime":
            return datetime(record);
        case "error":
            return error(text(record, "type"), text(record, "message"));
        default:
            return new ForeignValue(record);
    }
}

/** A record counts seconds, LangGraph's timeouts count milliseconds. */
function inMilliseconds(timeout: unknown): unknown {
    if (typeof timeout !== "object" || timeout === null) return timeout;
    const { run_timeout, idle_timeout, refresh_on } = timeout as Fields;
    const result: Fields = {};
    if (typeof run_timeout === "number") result.runTimeout = run_timeout * 1000;
    if (typeof idle_timeout === "number") result.idleTimeout = idle_timeout * 1000;
    result.refreshOn = refresh_on ?? "auto";
    return result;
}

function integer(digits: string): bigint {
    if (!/^-?\d+$/.test(digits)) throw new Error(`not an integer: ${digits.slice(0, 40)}`);
    return BigInt(digits);
}

function float(name: string): number {
    switch (name) {
        case "nan":
            return NaN;
        case "inf":
            return Infinity;
        case "-inf":
            return -Infinity;
        case "-0":
            return -0;
        default:
            throw new Error(`not a float: ${name.slice(0, 40)}`);
    }
}

const ZONED = /^(\d{4,}|[+-]\d{6})-\d\d-\d\dT\d\d:\d\d(:\d\d(\.\d+)?)?(Z|[+-]\d\d:\d\d)$/;

/** A time without a zone is not a Date: it is kept unchanged. */
function datetime(record: Fields): unknown {
    const iso = text(record, "v");
    if (!ZONED.test(iso)) return new ForeignValue(record);
    const date = new Date(iso.replace(/(\.\d{3})\d+/, "$1"));
    if (Number.isNaN(date.getTime())) return new ForeignValue(record);
    return date.toISOString() === iso ? date : rememberDateText(date, iso);
}

function error(name: string, message: string): Error {
    const result = new Error(message);
    if (name !== "Error") result.name = name;
    // The stack of this decoder would be misleading.
    result.stack = `${name}: ${message}`;
    return result;
}

function text(record: Fields, name: string): string {
    const value = record[name];
    if (typeof value !== "string") throw missing(record, name);
    return value;
}

function items(record: Fields): unknown[] {
    if (!Array.isArray(record.items)) throw missing(record, "items");
    return record.items;
}

function missing(record: Fields, name: string): Error {
    return new Error(`"${record.$ as string}" record lacks "${name}"`);
}

function base64(value: unknown, kind: string): Uint8Array {
    const source = value as string;
    const data = Buffer.from(source, "base64");
    if (source.length % 4 !== 0 || /[-_]/.test(source) || base64Length(source) !== data.length) {
        throw new Error(`"${kind}" record is not base64`);
    }
    return data;
}

function base64Length(source: string): number {
    const padding = source.endsWith("==") ? 2 : source.endsWith("=") ? 1 : 0;
    return (source.length / 4) * 3 - padding;
}

function utf8(data: Uint8Array): string {
    if (!isUtf8(data)) throw new Error("not UTF-8");
    return Buffer.from(data.buffer, data.byteOffset, data.byteLength).toString("utf8");
}

/** Assigns an own member of any name, including `__proto__`. */
export function setOwn(target: Fields, key: string, value: unknown): void {
    if (key === "__proto__") {
        Object.defineProperty(target, key, {
            value,
            configurable: true,
            enumerable: true,
            writable: true,
        });
    } else {
        target[key] = value;
    }
}
