/**
 * Renders values for clients of the HTTP API ("Rendering" in docs/encoding.md): the same text as
 * the server's for a stored value. Never fails: a value that JSON cannot express becomes text or
 * null.
 */
import { types } from "node:util";
import { DeltaSnapshot } from "@langchain/langgraph-checkpoint";
import { inSeconds } from "../encode.js";
import { ForeignValue } from "../foreign.js";
import { memberOf, messageClassOf, wholeClassOf, type MessageClass } from "../messages.js";
import { rememberQuoted } from "../quoting.js";
import type { Fields } from "./frame.js";

/** Deeper values become null. */
const MAX_DEPTH = 512;

export interface RenderOptions {
    /** Renders message chunks as chunks, not as complete messages. */
    readonly showChunks?: boolean;
}

/** The JSON text of a value. */
export function render(value: unknown, options: RenderOptions = {}): string {
    return new Renderer(options.showChunks ?? false).value(value) ?? "null";
}

/** The members of a message of one class after its content. */
interface MessageForm {
    readonly type: string;
    readonly members: readonly {
        readonly name: string;
        readonly head: string;
        readonly fallback: string;
    }[];
}

const FALLBACKS: Readonly<Record<string, string>> = {
    tool_calls: "[]",
    invalid_tool_calls: "[]",
    tool_call_chunks: "[]",
    status: '"success"',
    role: '""',
};

const COMMON = new Set(["id", "name", "additional_kwargs", "response_metadata"]);

function formOf({ type, members }: MessageClass): MessageForm {
    const names = members.map(({ name }) => name).filter((name) => !COMMON.has(name));
    return {
        type: `,"type":${JSON.stringify(type)},"name":`,
        members: names.map((name) => ({
            name,
            head: `,"${name}":`,
            fallback: FALLBACKS[name] ?? "null",
        })),
    };
}

const forms = new WeakMap<MessageClass, MessageForm>();

function formFor(kind: MessageClass): MessageForm {
    let form = forms.get(kind);
    if (form === undefined) forms.set(kind, (form = formOf(kind)));
    return form;
}

const quoteContent = rememberQuoted(quote);

function quote(text: string): string {
    return JSON.stringify(text.isWellFormed() ? text : text.toWellFormed());
}

class Renderer {
    readonly #showChunks: boolean;
    /** The enclosing objects. */
    readonly #around: object[] = [];

    constructor(showChunks: boolean) {
        this.#showChunks = showChunks;
    }

    /** Undefined for values that JSON omits. */
    value(value: unknown): string | undefined {
        switch (typeof value) {
            case "string":
                return quote(value);
            case "number":
                return number(value);
            case "boolean":
                return value ? "true" : "false";
            case "object":
                return value === null ? "null" : this.#object(value);
            case "bigint":
                return `${value}`;
            default:
                return undefined;
        }
    }

    #object(value: object): string | undefined {
        if (this.#around.length >= MAX_DEPTH || this.#around.includes(value)) return "null";
        this.#around.push(value);
        try {
            if (Array.isArray(value)) return this.#array(value);
            const prototype: unknown = Object.getPrototypeOf(value);
            if (prototype === Object.prototype || prototype === null)
                return this.#plain(value as Fields);
            return this.#instance(value);
        } catch (error) {
            // A user's getter or toJSON() failed.
            return quote(String(error));
        } finally {
            this.#around.pop();
        }
    }

    #array(value: readonly unknown[]): string {
        let text = "[";
        for (let i = 0; i < value.length; i++) {
            if (i > 0) text += ",";
            text += this.value(value[i]) ?? "null";
        }
        return `${text}]`;
    }

    #plain(value: Fields): string | undefined {
        if (typeof value.toJSON === "function") return this.#ownJSON(value);
        if (value.lg_name === "Command") return this.#command(value);
        return this.#members(value);
    }

    #members(value: Fields): string {
        let text = "";
        for (const key of Object.keys(value)) {
            const inner = this.value(value[key]);
            if (inner !== undefined) text += `${text === "" ? "" : ","}${quote(key)}:${inner}`;
        }
        return `{${text}}`;
    }

    #ownJSON(value: Fields): string | undefined {
        const json = (value.toJSON as (key: string) => unknown)("");
        return json === value ? this.#members(value) : this.value(json);
    }

    #instance(value: object): string | undefined {
        const kind = messageClassOf(value);
        if (kind !== null) return this.#message(value as Fields, kind);
        const fields = value as Fields;
        switch (fields.lg_name) {
            case "Send":
                return this.#send(fields);
            case "Command":
                return this.#command(fields);
            case "Overwrite":
                return `{"value":${this.value(fields.__overwrite__) ?? "null"},"type":"__overwrite__"}`;
        }
        if (value instanceof DeltaSnapshot) return this.value(value.value);
        if (value instanceof ForeignValue) return foreign(value);
        return this.#builtin(value);
    }

    #builtin(value: object): string | undefined {
        if (types.isDate(value))
            return Number.isNaN(value.getTime()) ? "null" : quote(value.toISOString());
        if (types.isMap(value)) return this.#map(value);
        if (types.isSet(value)) return this.#array([...value]);
        if (types.isUint8Array(value)) return `"${Buffer.from(value).toString("base64")}"`;
        if (types.isNativeError(value) || value instanceof Error) {
            return `{"error":${quote(String(value.name))},"message":${quote(String(value.message))}}`;
        }
        if (types.isRegExp(value)) return quote(String(value));
        if (types.isBoxedPrimitive(value)) return this.value(value.valueOf());
        return typeof (value as Fields).toJSON === "function"
            ? this.#ownJSON(value as Fields)
            : this.#members(value as Fields);
    }

    #message(message: Fields, kind: MessageClass): string {
        const form = formFor(this.#showChunks ? kind : wholeClassOf(kind));
        const { content } = message;
        let text = '{"content":';
        if (kind.isRemove) text += '""';
        else
            text +=
                typeof content === "string"
                    ? quoteContent(message, content)
                    : (this.value(content) ?? '""');
        text += `,"additional_kwargs":${this.#filled(message.additional_kwargs)}`;
        text += `,"response_metadata":${this.#filled(message.response_metadata)}`;
        text += `${form.type}${this.value(message.name) ?? "null"},"id":${this.value(message.id) ?? "null"}`;
        for (const { name, head, fallback } of form.members) {
            const member = memberOf(message, name);
            text +=
                head +
                (member === null || member === undefined
                    ? fallback
                    : (this.value(member) ?? fallback));
        }
        return `${text}}`;
    }

    #filled(value: unknown): string {
        return value === null || value === undefined ? "{}" : (this.value(value) ?? "{}");
    }

    #send(send: Fields): string {
        const timeout =
            send.timeout === undefined
                ? ""
                : `,"timeout":${this.value(inSeconds(send.timeout)) ?? "null"}`;
        return `{"node":${quote(String(send.node))},"arg":${this.value(send.args) ?? "null"}${timeout}}`;
    }

    #command(command: Fields): string {
        const goto =
            command.goto === undefined || command.goto === null ? [] : [command.goto].flat();
        const parts = ["graph", "update", "resume"].map(
            (name) => `"${name}":${this.value(command[name]) ?? "null"}`,
        );
        return `{${parts.join(",")},"goto":${this.#array(goto)}}`;
    }

    #map(map: ReadonlyMap<unknown, unknown>): string {
        const entries = [...map];
        const isNamed =
            entries.every(([key]) => typeof key === "string") ||
            entries.every(([key]) => isScalar(key));
        if (!isNamed) return this.#array(entries);
        return `{${entries.map(([key, member]) => `${quote(String(key))}:${this.value(member) ?? "null"}`).join(",")}}`;
    }
}

/** Keys that become member names by their text. */
function isScalar(key: unknown): boolean {
    return (
        key === null ||
        typeof key === "number" ||
        typeof key === "bigint" ||
        typeof key === "boolean"
    );
}

function number(value: number): string {
    if (!Number.isFinite(value)) return "null";
    return Object.is(value, -0) ? "-0.0" : `${value}`;
}

function foreign(value: ForeignValue): string {
    if (value.type === undefined) return JSON.stringify(value.toJSON());
    return `{"type":${JSON.stringify(value.type)},"data":"${Buffer.from(value.data as Uint8Array).toString("base64")}"}`;
}
