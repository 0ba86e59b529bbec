import assert from "node:assert/strict";
import { test } from "node:test";
import type { Message } from "@langchain/langgraph-sdk";
import { callsOf, isBlank, partsOf, resultText, shortArgs } from "./parts";

const ai = (more: object): Message => ({ id: "a", type: "ai", content: "", ...more }) as Message;

test("a text is a text", () => {
    assert.deepEqual(partsOf({ content: "Hello" }), {
        text: "Hello",
        images: [],
        reasoning: "",
        others: [],
    });
});

test("plain texts among the blocks are read", () => {
    const content = ["One", { type: "text", text: "Two" }] as unknown as Message["content"];
    assert.equal(partsOf({ content }).text, "One\n\nTwo");
});

test("blocks of all providers are read", () => {
    const content = [
        { type: "thinking", thinking: "Hmm. " },
        { type: "reasoning", summary: [{ text: "So." }] },
        { type: "text", text: "One" },
        { type: "image_url", image_url: { url: "data:image/png;base64,AA" } },
        { type: "image_url", image_url: "data:image/png;base64,BB" },
        { type: "image", source_type: "base64", mime_type: "image/jpeg", data: "CC" },
        { type: "image", base64: "DD", mimeType: "image/webp" },
        { type: "image", url: "https://example.com/x.png" },
        { type: "text", text: "Two" },
        { type: "tool_use", name: "weather" },
        { type: "audio" },
    ] as unknown as Message["content"];
    assert.deepEqual(partsOf({ content }), {
        text: "One\n\nTwo",
        images: [
            "data:image/png;base64,AA",
            "data:image/png;base64,BB",
            "data:image/jpeg;base64,CC",
            "data:image/webp;base64,DD",
            "https://example.com/x.png",
        ],
        reasoning: "Hmm. So.",
        others: ["audio"],
    });
});

test("reasoning of OpenAI-compatible servers is read from its own member", () => {
    assert.equal(
        partsOf({ content: "", additional_kwargs: { reasoning_content: "Hmm" } }).reasoning,
        "Hmm",
    );
});

test("malformed content yields no parts", () => {
    const content = [
        {},
        { type: "text" },
        { type: "image_url", image_url: null },
    ] as unknown as Message["content"];
    assert.deepEqual(partsOf({ content }), { text: "", images: [""], reasoning: "", others: [] });
    assert.equal(partsOf({ content: null as unknown as string }).text, "");
});

test("calls are found, invalid ones too", () => {
    const message = ai({
        tool_calls: [{ id: "1", name: "weather", args: { city: "Oslo" } }],
        invalid_tool_calls: [{ id: "2", name: null, args: "{" }],
    });
    assert.deepEqual(callsOf(message), [
        { id: "1", name: "weather", args: { city: "Oslo" }, isInvalid: false },
        { id: "2", name: "tool", args: "{", isInvalid: true },
    ]);
    assert.deepEqual(callsOf(ai({})), []);
});

test("JSON results are indented", () => {
    assert.equal(resultText('{"a":[1]}'), '{\n  "a": [\n    1\n  ]\n}');
    assert.equal(resultText("{not json"), "{not json");
    assert.equal(resultText("sunny"), "sunny");
});

test("arguments fit on one line", () => {
    assert.equal(shortArgs({ city: "Oslo", days: 3 }), 'city: "Oslo", days: 3');
    assert.equal(shortArgs(undefined), "");
    assert.equal(shortArgs({ text: "x".repeat(200) }).length, 81);
});

test("a message without visible parts is blank", () => {
    assert.equal(isBlank(ai({ content: "" })), true);
    assert.equal(isBlank(ai({ content: " \n" })), true);
    assert.equal(isBlank(ai({ content: [] })), true);
    assert.equal(isBlank(ai({ content: "a" })), false);
    assert.equal(isBlank(ai({ tool_calls: [{ id: "1", name: "f", args: {} }] })), false);
    assert.equal(isBlank(ai({ content: [{ type: "thinking", thinking: "hm" }] })), false);
    assert.equal(isBlank(ai({ content: [{ type: "video" }] })), false);
    assert.equal(isBlank(ai({ content: [{ type: "image_url", image_url: "data:," }] })), false);
});
