/** Values are rendered for clients as the server renders stored values. */
import { readFileSync } from "node:fs";
import * as messages from "@langchain/core/messages";
import { Command, Overwrite, Send } from "@langchain/langgraph";
import { DeltaSnapshot } from "@langchain/langgraph-checkpoint";
import { describe, expect, it } from "vitest";
import { CanonicalSerializer } from "../src/index.js";
import { render } from "../src/runtime/render.js";

interface Vector {
    readonly name: string;
    readonly hd1: string;
    readonly render: unknown;
    readonly js: string | null;
}

const path = new URL("../../tests/data/encoding.json", import.meta.url);
const vectors = (JSON.parse(readFileSync(path, "utf8")) as { valid: Vector[] }).valid;

function evaluate(expression: string): unknown {
    const names = { ...messages, Command, Overwrite, Send, DeltaSnapshot };
    return new Function(...Object.keys(names), `return (${expression});`)(...Object.values(names));
}

/** JSON has no undefined: undefined members are omitted, stored ones are null. */
const isComparable = ({ js, name }: Vector) =>
    js !== null && !js.includes("undefined") && name !== "key with an unpaired surrogate";

describe("a value is rendered like the stored one", () => {
    const compared = vectors.filter(isComparable);
    it.each(compared.map((vector) => [vector.name, vector] as const))("%s", (_name, vector) => {
        expect(JSON.parse(render(evaluate(vector.js!), { showChunks: true }))).toEqual(
            vector.render,
        );
    });

    it("in most cases", () => {
        expect(compared.length).toBeGreaterThan(80);
    });
});

describe("rendering", () => {
    it("never fails", () => {
        const circle: Record<string, unknown> = { a: 1 };
        circle.self = circle;
        circle.list = [circle, { circle }];
        expect(JSON.parse(render(circle))).toEqual({
            a: 1,
            self: null,
            list: [null, { circle: null }],
        });
        const bad = {
            get worse(): never {
                throw new Error("no");
            },
        };
        expect(JSON.parse(render({ bad, ok: 1 }))).toEqual({ bad: "Error: no", ok: 1 });
        expect(render(undefined)).toBe("null");
        expect(render(() => 1)).toBe("null");
        let deep: unknown = 1;
        for (let i = 0; i < 5000; i++) deep = [deep];
        expect(() => JSON.parse(render(deep))).not.toThrow();
    });

    it("renders chunks as complete messages, except in streams", () => {
        const chunk = new messages.AIMessageChunk({ content: "a", id: "1" });
        expect(JSON.parse(render([chunk]))).toEqual([
            JSON.parse(render(new messages.AIMessage({ content: "a", id: "1" }))),
        ]);
        expect(JSON.parse(render(chunk, { showChunks: true }))).toMatchObject({
            type: "AIMessageChunk",
            tool_call_chunks: [],
        });
    });

    it("follows a message that changes", () => {
        const message = new messages.HumanMessage("a");
        expect(JSON.parse(render(message)).content).toBe("a");
        message.content = "b";
        expect(JSON.parse(render(message)).content).toBe("b");
    });
});

describe("complete messages", () => {
    it("are written for chunks on request", async () => {
        const serde = new CanonicalSerializer();
        const chunk = new messages.AIMessageChunk({
            content: "",
            id: "1",
            tool_call_chunks: [
                { name: "add", args: '{"a":1}', id: "c", index: 0, type: "tool_call_chunk" },
            ],
        });
        const [, text] = await serde.dump([chunk], { wholeMessages: true });
        expect(JSON.parse(text as string)).toEqual([
            {
                $: "message",
                type: "ai",
                content: "",
                id: "1",
                tool_calls: [{ name: "add", args: { a: 1 }, id: "c", type: "tool_call" }],
            },
        ]);
        const [, kept] = await serde.dump([chunk]);
        expect(JSON.parse(kept as string)[0].type).toBe("AIMessageChunk");
    });

    it("are written for tool results", async () => {
        const serde = new CanonicalSerializer();
        const kindOf = async (metadata: object) => {
            const message = new messages.ToolMessage({
                content: "a",
                tool_call_id: "c",
                metadata,
            } as never);
            return JSON.parse((await serde.dump(message, { wholeMessages: true }))[1] as string).$;
        };
        expect(await kindOf({ versions: { core: "1" } })).toBe("message");
        expect(await kindOf({ versions: { core: "1" }, mine: 1 })).toBe("foreign");
    });
});
