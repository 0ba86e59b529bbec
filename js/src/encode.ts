/**
 * Writes the canonical encoding (docs/encoding.md).
 *
 * Concatenates text instead of building a tree for JSON.stringify: it measures faster for long
 * lists of messages, and it can express what JSON.stringify cannot (large whole numbers as floats,
 * `__proto__` as a key). Everything is read before the first function returns, so a caller may
 * change its objects afterwards.
 */
import { types } from "node:util";
import { dateText, ForeignValue, isFlagged, kindOf } from "./foreign.js";
import {
    isExpressible,
    isOmitted,
    memberOf,
    messageClassOf,
    wholeClassOf,
    type MessageClass,
} from "./messages.js";
import { rememberQuoted } from "./quoting.js";

type Fields = Record<string, unknown>;

/** The nesting depth that readers accept. */
export const MAX_DEPTH = 512;

/** Thrown when a value is nested too deep or contains itself. */
export class TooDeep extends Error {}

/** The stock serializer's output for a value: called synchronously, awaited later. */
export type DumpForeign = (value: unknown) => Promise<[string, Uint8Array]>;

/** The meaning of plain objects at the position of a value. */
export type Hint = "send" | "interrupt" | undefined;

export interface EncodeOptions {
    /** Omits undefined members, as JSON does, instead of writing them as undefined. */
    readonly dropUndefined?: boolean;
    readonly hint?: Hint;
    /**
     * Writes message chunks as complete messages, and omits the package versions that tools record,
     * so that every runtime reads all messages.
     */
    readonly wholeMessages?: boolean;
}

const UNDEFINED = '{"$":"undefined"}';

/** The text of a value, or a promise when a part of it needs the stock serializer. */
export function encode(
    value: unknown,
    dumpForeign: DumpForeign,
    options: EncodeOptions = {},
): string | Promise<string> {
    const encoder = new Encoder(
        dumpForeign,
        options.dropUndefined ?? false,
        options.wholeMessages ?? false,
    );
    const text = options.hint ? encoder.hinted(value, options.hint) : encoder.value(value, 0);
    if (text === undefined) throw new TypeError(`a ${typeof value} cannot be stored`);
    return encoder.finish(text);
}

class Encoder {
    /** Records in the writer's own serialization; each is a marker in the text, \0 index \0. */
    #foreign: Promise<[string, Uint8Array]>[] | undefined;
    readonly #dumpForeign: DumpForeign;
    #dropUndefined: boolean;
    readonly #wholeMessages: boolean;

    constructor(dumpForeign: DumpForeign, dropUndefined: boolean, wholeMessages: boolean) {
        this.#dumpForeign = dumpForeign;
        this.#dropUndefined = dropUndefined;
        this.#wholeMessages = wholeMessages;
    }

    /** The text of a value; undefined for functions and symbols, which JSON also omits. */
    value(value: unknown, depth: number): string | undefined {
        switch (typeof value) {
            case "string":
                return quote(value);
            case "number":
                return number(value);
            case "boolean":
                return value ? "true" : "false";
            case "object":
                return value === null ? "null" : this.#object(value, depth + 1);
            case "undefined":
                return UNDEFINED;
            case "bigint":
                return `{"$":"int","v":"${value}"}`;
            default:
                return undefined;
        }
    }

    /** As value(), for channels whose plain objects are known to be sends or interrupts. */
    hinted(value: unknown, hint: "send" | "interrupt"): string | undefined {
        if (typeof value !== "object" || value === null) return this.value(value, 0);
        if (Array.isArray(value)) {
            const items = value.map((item: unknown) =>
                isKind(item, hint) ? this.#kind(item, hint, 2) : (this.value(item, 1) ?? "null"),
            );
            return `[${items.join(",")}]`;
        }
        return isKind(value, hint) ? this.#kind(value, hint, 1) : this.value(value, 0);
    }

    finish(text: string): string | Promise<string> {
        return this.#foreign === undefined ? text : resolveForeign(text, this.#foreign);
    }

    #object(value: object, depth: number): string | undefined {
        if (depth > MAX_DEPTH) throw new TooDeep("nested too deep");
        if (Array.isArray(value)) return this.#array(value, depth);
        const prototype: unknown = Object.getPrototypeOf(value);
        if (prototype === Object.prototype || prototype === null) {
            return this.#plain(value as Fields, depth);
        }
        return this.#instance(value, depth);
    }

    #array(value: readonly unknown[], depth: number): string {
        let text = "[";
        for (let i = 0; i < value.length; i++) {
            if (i > 0) text += ",";
            text += this.value(value[i], depth) ?? "null";
        }
        return `${text}]`;
    }

    #plain(value: Fields, depth: number): string | undefined {
        const keys = Object.keys(value);
        const first = keys[0];
        if (first === "__overwrite__" && keys.length === 1) {
            return this.#record("overwrite", value.__overwrite__, depth);
        }
        if (first === "node" || first === "id" || first === "value") {
            const kind = kindOf(value);
            if (kind !== undefined) return this.#kind(value, kind, depth);
        }
        if (value.lg_name === "Command" && isPlainCommand(keys)) return this.#command(value, depth);
        if (typeof value.toJSON === "function") return this.#ownJSON(value, depth);
        return this.#members(value, keys, depth);
    }

    #ownJSON(value: Fields, depth: number): string | undefined {
        const json = (value.toJSON as (key: string) => unknown)("");
        return json === value
            ? this.#members(value, Object.keys(value), depth)
            : this.value(json, depth);
    }

    #members(value: Fields, keys: readonly string[], depth: number): string {
        let text = "{";
        for (const key of keys) {
            if (key === "$" || !key.isWellFormed())
                return this.#pairs(Object.entries(value), depth);
            const member = value[key];
            if (member === undefined && this.#dropUndefined) continue;
            const inner = this.value(member, depth);
            if (inner === undefined) continue;
            text +=
                text.length > 1
                    ? `,${JSON.stringify(key)}:${inner}`
                    : `${JSON.stringify(key)}:${inner}`;
        }
        return `${text}}`;
    }

    #instance(value: object, depth: number): string | undefined {
        const message = messageClassOf(value);
        if (message !== null) return this.#message(value as Fields, message, depth);
        const fields = value as Fields;
        switch (fields.lg_name) {
            case "Send":
                return this.#kind(fields, "send", depth);
            case "Command":
                return this.#command(fields, depth);
            case "Overwrite":
                return this.#record("overwrite", fields.__overwrite__, depth);
            case "DeltaSnapshot":
                return this.#record("delta", fields.value, depth);
        }
        if (value instanceof ForeignValue) return JSON.stringify(value);
        if (fields.lc_serializable === true) return this.#foreignRecord(value);
        return this.#builtin(value, depth);
    }

    #builtin(value: object, depth: number): string | undefined {
        if (types.isDate(value)) return Number.isNaN(value.getTime()) ? "null" : datetime(value);
        if (types.isMap(value)) return this.#map(value, depth);
        if (types.isSet(value)) return this.#set(value, depth);
        if (types.isUint8Array(value)) return bytes(value);
        if (types.isNativeError(value) || value instanceof Error) {
            return `{"$":"error","type":${quote(String(value.name))},"message":${quote(value.message)}}`;
        }
        if (types.isRegExp(value)) return this.#foreignRecord(value);
        if (types.isBoxedPrimitive(value)) return this.value(value.valueOf(), depth - 1);
        const fields = value as Fields;
        if (typeof fields.toJSON === "function") return this.#ownJSON(fields, depth);
        // An instance of a class without its own serialization: its data, as the stock serializer
        // does.
        return this.#members(fields, Object.keys(fields), depth);
    }

    #message(message: Fields, kind: MessageClass, depth: number): string {
        if (!isExpressible(message, kind, this.#wholeMessages)) return this.#foreignRecord(message);
        const { content } = message;
        const { head, members } = this.#wholeMessages ? wholeClassOf(kind) : kind;
        let text = head;
        if (kind.isRemove) text += '""';
        else
            text +=
                typeof content === "string"
                    ? quoteContent(message, content)
                    : this.value(content, depth);
        const isDropping = this.#dropUndefined;
        // The members of messages consist of optional fields, where undefined means absent.
        this.#dropUndefined = true;
        for (const { name, head: start, omit, fits } of members) {
            const value = memberOf(message, name);
            if (isOmitted(value, omit)) continue;
            if (!fits(value)) {
                text = this.#foreignRecord(message);
                this.#dropUndefined = isDropping;
                return text;
            }
            text += start + (this.value(value, depth) ?? "null");
        }
        this.#dropUndefined = isDropping;
        return `${text}}`;
    }

    #kind(value: Fields, kind: "send" | "interrupt", depth: number): string {
        if (depth > MAX_DEPTH) throw new TooDeep("nested too deep");
        if (kind === "interrupt") return this.#interrupt(value, depth);
        let text = `{"$":"send","node":${quote(value.node as string)}`;
        text += `,"arg":${this.value(value.args, depth) ?? "null"}`;
        if (value.timeout !== undefined)
            text += `,"timeout":${this.value(inSeconds(value.timeout), depth)}`;
        return `${text}}`;
    }

    #interrupt(value: Fields, depth: number): string {
        let text = `{"$":"interrupt","value":${this.value(value.value, depth) ?? "null"}`;
        text += `,"id":${quote(value.id as string)}`;
        if (value.response_schema !== undefined) {
            text += `,"response_schema":${this.value(value.response_schema, depth)}`;
        }
        return `${text}}`;
    }

    #command(value: Fields, depth: number): string {
        let text = '{"$":"command"';
        for (const key of ["graph", "update", "resume"]) {
            const member = value[key];
            if (member === undefined || member === null) continue;
            text += `,"${key}":${this.value(member, depth) ?? "null"}`;
        }
        const goto = value.goto === undefined || value.goto === null ? [] : [value.goto].flat();
        if (goto.length > 0) {
            const items = goto.map((item) =>
                isKind(item, "send")
                    ? this.#kind(item, "send", depth + 2)
                    : this.value(item, depth + 1),
            );
            text += `,"goto":[${items.join(",")}]`;
        }
        return `${text}}`;
    }

    #record(kind: string, value: unknown, depth: number): string {
        return `{"$":"${kind}","value":${this.value(value, depth) ?? "null"}}`;
    }

    #map(value: ReadonlyMap<unknown, unknown>, depth: number): string {
        const entries = [...value];
        // It would be read back as a plain object.
        const isMap = entries.every(([key]) => typeof key === "string");
        return this.#pairs(entries, depth, isMap ? ',"map":true' : "");
    }

    #pairs(entries: readonly (readonly [unknown, unknown])[], depth: number, tail = ""): string {
        const pairs: string[] = [];
        for (const [key, member] of entries) {
            if (member === undefined && this.#dropUndefined) continue;
            const inner = this.value(member, depth + 2);
            if (inner !== undefined)
                pairs.push(`[${this.value(key, depth + 2) ?? "null"},${inner}]`);
        }
        return `{"$":"map","items":[${pairs.join(",")}]${tail}}`;
    }

    #set(value: ReadonlySet<unknown>, depth: number): string {
        const items = [...value].map((item) => this.value(item, depth + 1) ?? "null");
        return `{"$":"set","items":[${items.join(",")}]${isFlagged(value) ? ',"frozen":true' : ""}}`;
    }

    /** Serialized now, written when the promise resolves: the marker cannot occur in JSON text. */
    #foreignRecord(value: object): string {
        this.#foreign ??= [];
        this.#foreign.push(this.#dumpForeign(value));
        return `\0${this.#foreign.length - 1}\0`;
    }
}

async function resolveForeign(
    text: string,
    foreign: readonly Promise<[string, Uint8Array]>[],
): Promise<string> {
    const records = (await Promise.all(foreign)).map(
        ([type, data]) => `{"$":"foreign","type":${JSON.stringify(type)},"v":"${base64(data)}"}`,
    );
    // Every second part is the index in a marker.
    return text
        .split("\0")
        .map((part, i) => (i % 2 === 0 ? part : records[Number(part)]))
        .join("");
}

const quoteContent = rememberQuoted(quote);

function quote(text: string): string {
    if (text.isWellFormed()) return JSON.stringify(text);
    return `{"$":"utf16","v":"${Buffer.from(text, "utf16le").toString("base64")}"}`;
}

function number(value: number): string {
    if (Number.isInteger(value)) {
        if (Number.isSafeInteger(value))
            return Object.is(value, -0) ? '{"$":"float","v":"-0"}' : `${value}`;
        // With an exponent, so that no reader parses it as an integer of exactly these digits.
        return value.toExponential();
    }
    if (Number.isFinite(value)) return `${value}`;
    const name = Number.isNaN(value) ? "nan" : value > 0 ? "inf" : "-inf";
    return `{"$":"float","v":"${name}"}`;
}

function base64(data: Uint8Array): string {
    return Buffer.from(data.buffer, data.byteOffset, data.byteLength).toString("base64");
}

function bytes(data: Uint8Array): string {
    return `{"$":"bytes","v":"${base64(data)}"${isFlagged(data) ? ',"mutable":true' : ""}}`;
}

function datetime(date: Date): string {
    return `{"$":"datetime","v":${JSON.stringify(dateText(date))}}`;
}

/** A LangGraph timeout as a record: seconds, and only members that are set. */
export function inSeconds(timeout: unknown): unknown {
    if (typeof timeout !== "object" || timeout === null) return timeout;
    const { runTimeout, idleTimeout, refreshOn } = timeout as Fields;
    const result: Fields = {};
    if (typeof runTimeout === "number") result.run_timeout = runTimeout / 1000;
    if (typeof idleTimeout === "number") result.idle_timeout = idleTimeout / 1000;
    if (typeof refreshOn === "string" && refreshOn !== "auto") result.refresh_on = refreshOn;
    return result;
}

const COMMAND_KEYS = new Set([
    "lg_name",
    "lc_direct_tool_output",
    "graph",
    "update",
    "resume",
    "goto",
]);

function isPlainCommand(keys: readonly string[]): boolean {
    return keys.every((key) => COMMAND_KEYS.has(key));
}

/** Reports whether LangGraph accepts a plain object as a send or an interrupt. */
function isKind(value: unknown, kind: "send" | "interrupt"): value is Fields {
    if (typeof value !== "object" || value === null || Array.isArray(value)) return false;
    const fields = value as Fields;
    const keys = Object.keys(fields);
    if (kind === "interrupt") {
        const isKnown = keys.every(
            (key) => key === "value" || key === "id" || key === "response_schema",
        );
        return isKnown && "value" in fields && typeof fields.id === "string";
    }
    if (typeof fields.node !== "string" || fields.args === undefined) return false;
    return keys.every(
        (key) => key === "node" || key === "args" || key === "timeout" || key === "lg_name",
    );
}
