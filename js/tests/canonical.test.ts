import {
    AIMessage,
    AIMessageChunk,
    ChatMessage,
    FunctionMessage,
    HumanMessage,
    HumanMessageChunk,
    RemoveMessage,
    SystemMessage,
    ToolMessage,
    type BaseMessage,
} from "@langchain/core/messages";
import { PromptTemplate } from "@langchain/core/prompts";
import { Command, Overwrite, Send } from "@langchain/langgraph";
import { DeltaSnapshot, MemorySaver } from "@langchain/langgraph-checkpoint";
import { describe, expect, it } from "vitest";
import { runInNewContext } from "node:vm";
import { CanonicalSerializer, ForeignValue } from "../src/index.js";

const serde = new CanonicalSerializer();
const stock = new MemorySaver().serde;

async function write(value: unknown): Promise<string> {
    const [type, data] = await serde.dumpsTyped(value);
    expect(type).toBe("hd1");
    return Buffer.from(data).toString();
}

async function read(text: string): Promise<any> {
    return serde.loadsTyped("hd1", Buffer.from(text));
}

async function roundTrip(value: unknown): Promise<any> {
    return serde.loadsTyped(...(await serde.dumpsTyped(value)));
}

async function stockTrip(value: unknown): Promise<any> {
    return stock.loadsTyped(...(await stock.dumpsTyped(value)));
}

describe("plain values", () => {
    it.each([
        null,
        true,
        false,
        "",
        "text",
        "é, ü, 漢字, 😀",
        '"\\\n\t\u0000\u001f\u2028',
        0,
        -1,
        1.5,
        1e-7,
        Number.MAX_SAFE_INTEGER,
        Number.MIN_SAFE_INTEGER,
        5e-324,
        1.7976931348623157e308,
        [],
        {},
        [1, [2, [3]]],
        { a: { b: [null] }, "": 1 },
    ])("%j reads back as it was", async (value) => {
        expect(await roundTrip(value)).toStrictEqual(value);
        expect(await write(value)).toBe(JSON.stringify(value));
    });

    it("keeps a large whole number a float for every reader", async () => {
        expect(await write(2 ** 60)).toBe("1.152921504606847e+18");
        expect(await roundTrip([2 ** 60, -(2 ** 53), 1e300])).toStrictEqual([
            2 ** 60,
            -(2 ** 53),
            1e300,
        ]);
    });

    it("keeps members named __proto__ and constructor", async () => {
        const value = JSON.parse('{"__proto__":{"x":{"$":"int","v":"1"}},"constructor":1}');
        const text = '{"__proto__":{"x":{"$":"int","v":"1"}},"constructor":1}';
        expect(await write(value)).toBe(
            '{"__proto__":{"x":{"$":"map","items":[["$","int"],["v","1"]]}},"constructor":1}',
        );
        const back = await read(text);
        expect(Object.keys(back)).toEqual(["__proto__", "constructor"]);
        expect(Object.getOwnPropertyDescriptor(back, "__proto__")?.value).toStrictEqual({ x: 1n });
        expect(Object.getPrototypeOf(back)).toBe(Object.prototype);
        const pairs = await read(
            '{"$":"map","items":[["__proto__",{"$":"set","items":[]}],["$",1]]}',
        );
        expect(Object.keys(pairs)).toEqual(["__proto__", "$"]);
        expect(Object.getPrototypeOf(pairs)).toBe(Object.prototype);
    });
});

describe("values JSON cannot express", () => {
    it.each<[string, unknown, string]>([
        ["undefined", undefined, '{"$":"undefined"}'],
        ["a bigint", 9007199254740993n, '{"$":"int","v":"9007199254740993"}'],
        ["a small bigint", -5n, '{"$":"int","v":"-5"}'],
        ["NaN", NaN, '{"$":"float","v":"nan"}'],
        ["Infinity", Infinity, '{"$":"float","v":"inf"}'],
        ["-Infinity", -Infinity, '{"$":"float","v":"-inf"}'],
        ["-0", -0, '{"$":"float","v":"-0"}'],
        ["bytes", [new Uint8Array([0, 1, 255])], '[{"$":"bytes","v":"AAH/"}]'],
        [
            "a Set",
            new Set([1, "a", new Set()]),
            '{"$":"set","items":[1,"a",{"$":"set","items":[]}]}',
        ],
        ["a Map", new Map<unknown, unknown>([[1, "a"]]), '{"$":"map","items":[[1,"a"]]}'],
        ["a Map of strings", new Map([["a", 1]]), '{"$":"map","items":[["a",1]],"map":true}'],
        ["an empty Map", new Map(), '{"$":"map","items":[],"map":true}'],
        ["a member named $", { a: 1, $: "x" }, '{"$":"map","items":[["a",1],["$","x"]]}'],
        ["a lone surrogate", "a\ud800", '{"$":"utf16","v":"YQAA2A=="}'],
        [
            "a lone surrogate as a key",
            { "\udc00": 1 },
            '{"$":"map","items":[[{"$":"utf16","v":"ANw="},1]]}',
        ],
        ["a Date", new Date(0), '{"$":"datetime","v":"1970-01-01T00:00:00.000Z"}'],
        [
            "undefined inside",
            { a: undefined, b: [undefined] },
            '{"a":{"$":"undefined"},"b":[{"$":"undefined"}]}',
        ],
    ])("%s", async (_name, value, text) => {
        expect(await write(value)).toBe(text);
        expect(await read(text)).toStrictEqual(value);
    });

    it("keeps the name and message of an Error", async () => {
        const error = await roundTrip({ error: new TypeError("no") });
        expect(error.error).toBeInstanceOf(Error);
        expect(error.error.name).toBe("TypeError");
        expect(error.error.message).toBe("no");
        expect(await write(error)).toBe(
            '{"error":{"$":"error","type":"TypeError","message":"no"}}',
        );
        expect((await roundTrip(new Error("x"))).name).toBe("Error");
    });

    it("recognizes values of another realm", async () => {
        const value = runInNewContext(
            "({d: new Date(0), m: new Map([[1, 2]]), s: new Set([3]), a: [1], o: {p: 1}})",
        );
        expect(await roundTrip(value)).toStrictEqual({
            d: new Date(0),
            m: new Map([[1, 2]]),
            s: new Set([3]),
            a: [1],
            o: { p: 1 },
        });
    });

    it("stores plain bytes unchanged", async () => {
        const bytes = new Uint8Array([0, 255]);
        const dumped = serde.dumpsTyped(bytes);
        bytes[0] = 9;
        expect(await dumped).toStrictEqual(["bytes", new Uint8Array([0, 255])]);
        expect(await serde.loadsTyped("bytes", Buffer.from([0, 255]))).toStrictEqual(
            new Uint8Array([0, 255]),
        );
        const mutable = await serde.loadsTyped("bytearray", Buffer.from([7]));
        expect(mutable).toStrictEqual(new Uint8Array([7]));
        expect(await serde.dumpsTyped(mutable)).toStrictEqual(["bytearray", new Uint8Array([7])]);
    });

    it("writes a Buffer as bytes and reads a Uint8Array", async () => {
        const back = await roundTrip({ data: Buffer.from("abc") });
        expect(back.data).toStrictEqual(new Uint8Array([97, 98, 99]));
    });

    it("omits functions and symbols, as JSON does, and rejects one alone", async () => {
        expect(await write({ a: () => 1, b: [Symbol("x")], c: 1 })).toBe('{"b":[null],"c":1}');
        await expect(serde.dumpsTyped(() => 1)).rejects.toThrow("a function cannot be stored");
    });

    it("writes the data of class instances, by toJSON if defined", async () => {
        class Point {
            x = 1;
            tags = new Set(["a"]);
        }
        expect(await roundTrip(new Point())).toStrictEqual({ x: 1, tags: new Set(["a"]) });
        expect(await roundTrip(new URL("http://localhost/a"))).toBe("http://localhost/a");
        const own = { a: 1, toJSON: () => own };
        expect(await roundTrip(own)).toStrictEqual({ a: 1 });
        class Endless {
            toJSON() {
                return new Endless();
            }
        }
        expect(await roundTrip(new Endless())).toEqual(await stockTrip(new Endless()));
    });
});

describe("values of another runtime", () => {
    it.each([
        '{"$":"foreign","type":"msgpack","v":"gaFh"}',
        '{"a":{"$":"hologram","depth":3,"v":[1,{"$":"int","v":"1"}]}}',
        '[{"$":"datetime","v":"2026-01-31T12:34:56.123456"}]',
        '{"t":{"$":"datetime","v":"2026-01-31T12:34:56.123456+02:00"}}',
        '{"$":"set","items":[1],"frozen":true}',
        '[{"$":"bytes","v":"AAE=","mutable":true}]',
        '{"$":"message","type":"telepathy","content":"…"}',
    ])("%s is written back unchanged", async (text) => {
        const value = await read(text);
        const [type, data] = await serde.dumpsTyped(value);
        if (type === "hd1") expect(Buffer.from(data).toString()).toBe(text);
        else expect([type, Buffer.from(data).toString("base64")]).toEqual(["msgpack", "gaFh"]);
    });

    it("reads a time with a zone as a Date, and writes the new time once it was changed", async () => {
        const { t } = await read('{"t":{"$":"datetime","v":"2026-01-31T12:34:56.123456+02:00"}}');
        expect(t).toStrictEqual(new Date("2026-01-31T10:34:56.123Z"));
        t.setTime(0);
        expect(await write(t)).toBe('{"$":"datetime","v":"1970-01-01T00:00:00.000Z"}');
    });

    it("gives the bytes of a foreign value", async () => {
        const value = await serde.loadsTyped("msgpack", Buffer.from([1, 2]));
        expect(value).toBeInstanceOf(ForeignValue);
        const foreign = value as ForeignValue;
        expect([foreign.kind, foreign.type, [...foreign.data!]]).toEqual([
            "foreign",
            "msgpack",
            [1, 2],
        ]);
        expect(await write([foreign])).toBe('[{"$":"foreign","type":"msgpack","v":"AQI="}]');
        expect(await serde.dumpsTyped(foreign)).toEqual(["msgpack", Buffer.from([1, 2])]);
    });
});

describe("damaged text is rejected", () => {
    it.each([
        '{"$":1}',
        '{"$":null}',
        '{"$":"message","type":"human"}',
        '{"$":"message","content":"x"}',
        '{"$":"message","type":"human","content":7}',
        '{"$":"message","type":"tool","content":"x"}',
        '{"$":"send","node":"a"}',
        '{"$":"send","arg":1}',
        '{"$":"interrupt","id":"a"}',
        '{"$":"overwrite"}',
        '{"$":"delta"}',
        '{"$":"map"}',
        '{"$":"map","items":[[1]]}',
        '{"$":"set","items":{}}',
        '{"$":"int","v":"1.5"}',
        '{"$":"int","v":1}',
        '{"$":"float","v":"1"}',
        '{"$":"bytes","v":"A"}',
        '{"$":"bytes","v":"A-=="}',
        '{"$":"bytes"}',
        '{"$":"utf16"}',
        '{"$":"datetime"}',
        '{"$":"error","type":"E"}',
        '{"$":"foreign","type":"json"}',
        "[1,]",
        "",
        "\ufeff1",
        `${"[".repeat(513)}${"]".repeat(513)}`,
    ])("%s", async (text) => {
        await expect(read(text)).rejects.toThrow();
    });

    it("bytes that are not UTF-8", async () => {
        await expect(serde.loadsTyped("hd1", new Uint8Array([0x22, 0xff, 0x22]))).rejects.toThrow(
            "not UTF-8",
        );
    });

    it("512 levels are read", async () => {
        const text = `${"[".repeat(512)}${"]".repeat(512)}`;
        expect(await write(await read(text))).toBe(text);
    });
});

const messages: [string, BaseMessage, string][] = [
    ["human", new HumanMessage("hi"), '{"$":"message","type":"human","content":"hi"}'],
    [
        "human with everything",
        new HumanMessage({
            content: [
                { type: "text", text: "a" },
                { type: "image_url", image_url: { url: "u" } },
            ],
            id: "m1",
            name: "ann",
            additional_kwargs: { k: 1 },
            response_metadata: { r: [1] },
        }),
        '{"$":"message","type":"human","content":[{"type":"text","text":"a"},{"type":"image_url","image_url":{"url":"u"}}],"id":"m1","name":"ann","additional_kwargs":{"k":1},"response_metadata":{"r":[1]}}',
    ],
    [
        "system",
        new SystemMessage({ content: "be", id: "s" }),
        '{"$":"message","type":"system","content":"be","id":"s"}',
    ],
    [
        "ai with tool calls",
        new AIMessage({
            content: "",
            id: "a1",
            tool_calls: [{ name: "look", args: { q: 1 }, id: "c1", type: "tool_call" }],
            invalid_tool_calls: [
                { name: "x", args: "{", id: "c2", error: "bad", type: "invalid_tool_call" },
            ],
            usage_metadata: { input_tokens: 1, output_tokens: 2, total_tokens: 3 },
        }),
        '{"$":"message","type":"ai","content":"","id":"a1","tool_calls":[{"name":"look","args":{"q":1},"id":"c1","type":"tool_call"}],"invalid_tool_calls":[{"name":"x","args":"{","id":"c2","error":"bad","type":"invalid_tool_call"}],"usage_metadata":{"input_tokens":1,"output_tokens":2,"total_tokens":3}}',
    ],
    ["ai", new AIMessage("yes"), '{"$":"message","type":"ai","content":"yes"}'],
    [
        "tool",
        new ToolMessage({
            content: "42",
            tool_call_id: "c1",
            artifact: { a: 1 },
            status: "error",
            name: "look",
        }),
        '{"$":"message","type":"tool","content":"42","name":"look","tool_call_id":"c1","artifact":{"a":1},"status":"error"}',
    ],
    [
        "tool that says it succeeded",
        new ToolMessage({ content: "", tool_call_id: "c1", status: "success" }),
        '{"$":"message","type":"tool","content":"","tool_call_id":"c1","status":"success"}',
    ],
    [
        "chat",
        new ChatMessage("x", "critic"),
        '{"$":"message","type":"chat","content":"x","role":"critic"}',
    ],
    [
        "function",
        new FunctionMessage({ content: "x", name: "f" }),
        '{"$":"message","type":"function","content":"x","name":"f"}',
    ],
    [
        "remove",
        new RemoveMessage({ id: "m1" }),
        '{"$":"message","type":"remove","content":"","id":"m1"}',
    ],
    [
        "a chunk",
        new HumanMessageChunk("h"),
        '{"$":"message","type":"HumanMessageChunk","content":"h"}',
    ],
    [
        "an ai chunk",
        new AIMessageChunk({
            content: "x",
            tool_call_chunks: [
                { name: "look", args: '{"q":1}', id: "c1", index: 0, type: "tool_call_chunk" },
            ],
        }),
        '{"$":"message","type":"AIMessageChunk","content":"x","tool_calls":[{"name":"look","args":{"q":1},"id":"c1","type":"tool_call"}],"tool_call_chunks":[{"name":"look","args":"{\\"q\\":1}","id":"c1","index":0,"type":"tool_call_chunk"}]}',
    ],
];

describe("messages", () => {
    it.each(messages)("%s", async (_name, message, text) => {
        expect(await write(message)).toBe(text);
        const back = await read(text);
        expect(back.constructor).toBe(message.constructor);
        // The value from LangGraph's own serializer, including constructor fields.
        expect(back).toEqual(await stockTrip(message));
        expect(await write(back)).toBe(text);
    });

    it("keep raw tool calls that were never parsed", async () => {
        const warn = console.warn;
        console.warn = () => undefined;
        try {
            const raw = [
                { id: "c", type: "function" as const, function: { name: "f", arguments: "{}" } },
            ];
            const message = new AIMessage({
                content: "",
                additional_kwargs: { tool_calls: raw },
                tool_calls: [],
            });
            const back = await roundTrip(message);
            expect(back.tool_calls).toEqual([]);
            expect(back.additional_kwargs.tool_calls).toEqual(raw);
        } finally {
            console.warn = warn;
        }
    });

    it("of the newer output format keep their content blocks", async () => {
        const message = new AIMessage({
            contentBlocks: [{ type: "text", text: "hi" }],
            id: "v1",
        } as never);
        const back = await roundTrip(message);
        expect(back.content).toEqual(message.content);
        expect(back.contentBlocks).toEqual(message.contentBlocks);
        expect(back.response_metadata.output_version).toBe("v1");
        expect((await write(message)).includes("foreign")).toBe(false);
    });

    it("that changed after they were written are written in their new state", async () => {
        const message = new HumanMessage("before");
        expect(await write([message])).toContain("before");
        message.content = "after";
        message.additional_kwargs.k = 1;
        expect(await write([message])).toBe(
            '[{"$":"message","type":"human","content":"after","additional_kwargs":{"k":1}}]',
        );
    });

    it("with additional fields are kept by the stock serializer", async () => {
        const message = new HumanMessage({ content: "x", mood: "good" } as never);
        expect(await write(message)).toContain('"$":"foreign","type":"json"');
        const back = await roundTrip({ list: [message, 1n] });
        expect(back.list[0]).toEqual(await stockTrip(message));
        expect(back.list[0].lc_kwargs.mood).toBe("good");
        expect(back.list[1]).toBe(1n);
    });

    it("of a user's class are left to the stock serializer", async () => {
        class Shout extends HumanMessage {
            volume = 11;
        }
        expect(await write([new Shout("x")])).toMatch(/^\[\{"\$":"foreign"/);
    });
});

describe("LangGraph's own objects", () => {
    const values: [string, unknown, string][] = [
        ["Send", new Send("n", { a: 1 }), '{"$":"send","node":"n","arg":{"a":1}}'],
        [
            "Send with a timeout",
            new Send("n", 1, { timeout: 5000 }),
            '{"$":"send","node":"n","arg":1,"timeout":{"run_timeout":5}}',
        ],
        ["Overwrite", new Overwrite([1]), '{"$":"overwrite","value":[1]}'],
        ["an overwrite as plain object", { __overwrite__: 1 }, '{"$":"overwrite","value":1}'],
        ["a delta snapshot", new DeltaSnapshot([1]), '{"$":"delta","value":[1]}'],
        [
            "Command",
            new Command({ update: { a: 1 }, goto: ["n", new Send("m", 2)], resume: "r" }),
            '{"$":"command","update":{"a":1},"resume":"r","goto":["n",{"$":"send","node":"m","arg":2}]}',
        ],
        ["an empty Command", new Command({}), '{"$":"command"}'],
    ];

    it.each(values)("%s", async (_name, value, text) => {
        expect(await write(value)).toBe(text);
        const back = await read(text);
        expect(back).toEqual(await stockTrip(value));
        expect(await write(back)).toBe(text);
        expect(await write({ inside: [back] })).toBe(`{"inside":[${text}]}`);
    });

    it("keeps the graph of a Command, which the stock serializer loses", async () => {
        const back = await roundTrip(new Command({ graph: Command.PARENT, goto: "n" }));
        expect(back).toMatchObject({ lg_name: "Command", graph: "__parent__", goto: ["n"] });
    });

    it("an interrupt is a plain object that stays an interrupt", async () => {
        const text = '{"$":"interrupt","value":{"q":1},"id":"i"}';
        const back = await read(text);
        expect(back).toEqual({ value: { q: 1 }, id: "i" });
        expect(await write(back)).toBe(text);
    });

    it("does not change user objects that only look like a send", async () => {
        expect(await write({ node: "n", args: 1 })).toBe('{"node":"n","args":1}');
    });
});

describe("a value that the encoding cannot express", () => {
    it("is kept inside other values", async () => {
        const value = { pattern: /a+/gi, list: [1n, /b/] };
        expect(await roundTrip(value)).toStrictEqual(value);
    });

    it("may occur anywhere, also as a key or in a set", async () => {
        const value = new Map<unknown, unknown>([[new Set([/a/]), [/b/, new Map([[/c/, /d/]])]]]);
        const back: Map<Set<RegExp>, unknown> = await roundTrip(value);
        expect([...[...back.keys()][0]!]).toEqual([/a/]);
        expect([...back.values()]).toEqual([[/b/, new Map([[/c/, /d/]])]]);
    });

    it("is read before the call returns", async () => {
        const template = { template: PromptTemplate.fromTemplate("hi {name}"), list: [1] };
        const dumped = serde.dumpsTyped(template);
        template.list.push(2);
        template.template.template = "changed";
        const back = (await serde.loadsTyped(...(await dumped))) as typeof template;
        expect(back.list).toEqual([1]);
        expect(back.template.template).toBe("hi {name}");
        expect(back.template).toBeInstanceOf(PromptTemplate);
    });

    it("goes to the stock serializer as a whole when it is nested too deep or contains itself", async () => {
        const deep: unknown[] = [];
        let at = deep;
        for (let i = 0; i < 600; i++) at.push((at = []));
        const [type, data] = await serde.dumpsTyped(deep);
        expect(type).toBe("json");
        expect(await serde.loadsTyped(type, data)).toEqual(deep);
        const loop: Record<string, unknown> = { a: 1 };
        loop.self = loop;
        expect(await roundTrip(loop)).toEqual(await stockTrip(loop));
    });

    it("is read from earlier output of the stock serializer", async () => {
        const value = { m: new HumanMessage("x"), s: new Set([1]) };
        const [type, data] = await stock.dumpsTyped(value);
        expect(await serde.loadsTyped(type, data)).toEqual(value);
        expect(await serde.loadsTyped("bytes", new Uint8Array([1]))).toEqual(new Uint8Array([1]));
    });
});
