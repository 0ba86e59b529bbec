import assert from "node:assert/strict";
import { test } from "node:test";
import type { Members } from "@/interrupts/question";
import { configOf, draftOf, fieldOfRefusal, settingsOf } from "./draft";

const schema = {
    properties: {
        model_name: { title: "Model", type: "string", default: "openai:gpt-4o" },
        temperature: { type: "number", minimum: 0, maximum: 2, default: 0.7 },
        max_tokens: { type: "integer", minimum: 1 },
        rag: { type: ["object", "null"] },
        auto: { type: "boolean" },
        custom_api_key: { type: ["string", "null"] },
        approval: { type: ["boolean", "array", "null"] },
        mcp_config: { type: "object" },
    },
};

const source = (configurable: Members, config: Members = {}) => ({
    name: "Ada",
    description: null,
    graph_id: "agent",
    config: { ...config, configurable } as never,
});
const again = (configurable: Members, config: Members = {}) =>
    configOf(draftOf(source(configurable, config), schema), schema);

test("saving the loaded draft changes nothing", () => {
    const all: Members = {
        model_name: "anthropic:x",
        temperature: 0.5,
        max_tokens: 10,
        rag: { rag_url: "https://r", collections: ["c"] },
        auto: false,
        mcp_config: {
            servers: [{ name: "a", url: "https://a/mcp", tools: ["t"], auth_required: true }],
            more: 1,
        },
        a2a: [{ url: "https://b", protocol: "1.0" }],
        assistants: ["other", "one more"],
        http_tools: [{ name: "h", url: "https://h" }],
        approval: [
            "a_*",
            { tool: "b", allow: ["accept"], description: "B", args: { n: { gt: 1 } } },
        ],
        unknown: { kept: true },
    };
    assert.deepEqual(again(all, { recursion_limit: 30, tags: ["x"] }), {
        config: { recursion_limit: 30, tags: ["x"], configurable: all },
    });
    assert.deepEqual(again({}), { config: { configurable: {} } });
    assert.deepEqual(again({ approval: true }), { config: { configurable: { approval: true } } });
});

test("unknown members stay as JSON", () => {
    const odd: Members = {
        approval: [3],
        mcp_config: "what",
        a2a: [{ no: "url" }],
        assistants: [1],
        temperature: "warm",
    };
    const draft = draftOf(source(odd), schema);
    assert.deepEqual(JSON.parse(draft.other), odd);
    assert.deepEqual(configOf(draft, schema), { config: { configurable: odd } });
});

test("errors are reported at their field", () => {
    const draft = draftOf(source({}), schema);
    const wrong = {
        ...draft,
        name: " ",
        plain: { temperature: "3", max_tokens: "1.5", rag: "{" },
        httpTools: "{}",
        other: "[]",
        servers: [{ name: "", url: "ftp://x", rest: {} }],
        approval: "rules" as const,
        rules: [{ tool: "", replyTypes: [], description: "", rest: {} }],
    };
    const written = configOf(wrong, schema);
    assert.ok("errors" in written);
    assert.deepEqual(Object.keys(written.errors).toSorted(), [
        "approval.0",
        "http_tools",
        "max_tokens",
        "mcp_config.0",
        "name",
        "other",
        "rag",
        "temperature",
    ]);
    assert.equal(written.errors.temperature, "At most 2.");
});

test("API keys have no input, and a server error maps to its field", () => {
    assert.ok(!settingsOf(schema).some((setting) => setting.name === "custom_api_key"));
    assert.equal(
        fieldOfRefusal("config.configurable.custom_api_key: keys are not stored"),
        "custom_api_key",
    );
    assert.equal(fieldOfRefusal('Graph with id "x" not found'), "");
});
