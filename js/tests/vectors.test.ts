/** The test vectors shared by the C core, the Python package and this one. */
import { readFileSync } from "node:fs";
import * as messages from "@langchain/core/messages";
import { Command, Overwrite, Send } from "@langchain/langgraph";
import { DeltaSnapshot } from "@langchain/langgraph-checkpoint";
import { describe, expect, it } from "vitest";
import { CanonicalSerializer } from "../src/index.js";

interface Valid {
    readonly name: string;
    readonly hd1: string;
    readonly js: string | null;
    readonly js_reads?: string;
    readonly js_keeps?: boolean;
}

interface Invalid {
    readonly name: string;
    readonly hd1: string;
    readonly strict?: boolean;
}

const path = new URL("../../tests/data/encoding.json", import.meta.url);
const vectors = JSON.parse(readFileSync(path, "utf8")) as { valid: Valid[]; invalid: Invalid[] };
const serde = new CanonicalSerializer();

function evaluate(expression: string): unknown {
    const names = { ...messages, Command, Overwrite, Send, DeltaSnapshot };
    return new Function(...Object.keys(names), `return (${expression});`)(...Object.values(names));
}

async function write(value: unknown): Promise<readonly [string, string]> {
    const [type, data] = await serde.dumpsTyped(value);
    return [type, Buffer.from(data).toString()];
}

/** LangGraph's own serializer reads its classes back as plain objects, and graphs rely on that. */
function plain(value: unknown): unknown {
    if (value instanceof Send) {
        const { node, args, timeout } = value;
        return { node, args, ...(timeout && { timeout }) };
    }
    if (value instanceof Overwrite) return { __overwrite__: plain(value.value) };
    if (value instanceof Command) {
        const { lg_name, graph, update, resume, goto } = value;
        return { lg_name, graph, update, resume, goto: (goto as unknown[]).map(plain) };
    }
    if (Array.isArray(value)) return value.map(plain);
    if (Object.getPrototypeOf(value ?? 0) !== Object.prototype) return value;
    return Object.fromEntries(
        Object.entries(value as object).map(([key, member]) => [key, plain(member)]),
    );
}

const all = vectors.valid;

describe("each vector", () => {
    const written = all.filter(({ js }) => js !== null);
    it.each(written.map((vector) => [vector.name, vector] as const))(
        "is written: %s",
        async (_name, vector) => {
            expect(await write(evaluate(vector.js!))).toEqual(["hd1", vector.hd1]);
        },
    );

    const readable = all.filter(({ js, js_reads }) => (js_reads ?? js) !== null);
    it.each(readable.map((vector) => [vector.name, vector] as const))(
        "is read: %s",
        async (_name, vector) => {
            const expected = plain(evaluate((vector.js_reads ?? vector.js)!));
            const value = await serde.loadsTyped("hd1", Buffer.from(vector.hd1));
            // toEqual() treats an undefined member as absent.
            if (vector.js?.includes("undefined")) expect(value).toStrictEqual(expected);
            expect(value).toEqual(expected);
            expect(Object.prototype.toString.call(value)).toBe(
                Object.prototype.toString.call(expected),
            );
        },
    );

    // The text that this package writes for a value it has read: the same, except for Python-only
    // number formats.
    const lossy = /(of Python$)/;
    const kept = all.filter(({ name, js_keeps }) => js_keeps || !lossy.test(name));
    it.each(kept.map((vector) => [vector.name, vector] as const))(
        "is written back: %s",
        async (_name, vector) => {
            const value = await serde.loadsTyped("hd1", Buffer.from(vector.hd1));
            expect(await write(value)).toEqual(["hd1", vector.hd1]);
        },
    );

    const refused = vectors.invalid.filter(({ strict }) => !strict);
    it.each(refused.map(({ name, hd1 }) => [name, hd1] as const))(
        "is refused: %s",
        async (_name, hd1) => {
            await expect(serde.loadsTyped("hd1", Buffer.from(hd1))).rejects.toThrow();
        },
    );

    it("exists", () => {
        expect(all.length).toBeGreaterThan(100);
        expect(refused.length).toBeGreaterThan(30);
        expect(kept.length).toBeGreaterThan(all.length - 10);
    });
});
