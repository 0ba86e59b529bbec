// The requests of agent-chat-ui: those that it makes by itself, and the JavaScript client as its `useStream`
// calls it. Ends with 0 when everything is as that interface needs it.
//
//   node chat_ui.mjs URL MODEL_URL TOOL_JSON
import assert from "node:assert/strict";
import { Client } from "@langchain/langgraph-sdk";
import { AIMessageChunk, coerceMessageLikeToMessage } from "@langchain/core/messages";

const [url, model, tool] = process.argv.slice(2);
const client = new Client({ apiUrl: url });
const configurable = {
    base_url: model,
    custom_model_name: "mock",
    custom_api_key: "sk-mock",
    http_tools: [JSON.parse(tool)],
};

// The state that useStream keeps of a run: values, and messages assembled from chunks by their ids.
class Shown {
    values = {};
    interrupts = [];
    messages = new Map();
    events = [];

    take({ event, data }) {
        this.events.push(event);
        const [name] = event.split("|");
        assert.notEqual(name, "error", JSON.stringify(data));
        if (name === "values" && event === "values") {
            if ("__interrupt__" in data) this.interrupts = data.__interrupt__;
            this.values = { ...this.values, ...data };
        }
        if (name === "messages") this.add(data);
    }

    add([chunk, metadata]) {
        assert.ok(
            chunk.id && metadata.langgraph_node && metadata.langgraph_checkpoint_ns !== undefined,
        );
        if (chunk.type !== "AIMessageChunk") {
            this.messages.set(chunk.id, coerceMessageLikeToMessage(chunk));
            return;
        }
        const next = new AIMessageChunk(chunk);
        const before = this.messages.get(chunk.id);
        this.messages.set(chunk.id, before ? before.concat(next) : next);
    }
}

async function submit(thread, input, options = {}) {
    const shown = new Shown();
    const stream = client.runs.stream(thread, "agent", {
        input,
        config: { configurable },
        streamMode: ["values", "messages-tuple", "custom"],
        streamSubgraphs: true,
        streamResumable: true,
        onDisconnect: "continue",
        multitaskStrategy: undefined,
        ...options,
    });
    for await (const part of stream) shown.take(part);
    return shown;
}

const human = (content, id) => ({ messages: [{ id, type: "human", content }] });
const ids = (messages) => messages.map((message) => message.id);

async function aTurnIsShownAsItIsStored() {
    const { thread_id: thread } = await client.threads.create({ metadata: { graph_id: "agent" } });
    const shown = await submit(thread, human('use weather with {"city": "Bern"}', "m1"));
    const { values } = await client.threads.getState(thread);
    assert.deepEqual(
        values.messages.map((m) => m.type),
        ["human", "ai", "tool", "ai"],
    );
    assert.deepEqual(shown.values.messages, values.messages);
    assert.deepEqual([...shown.messages.keys()], ids(values.messages.slice(1)));
    assert.equal(shown.messages.get(values.messages[3].id).content, values.messages[3].content);
    const [call] = shown.messages.get(values.messages[1].id).tool_calls;
    assert.deepEqual([call.name, call.args], ["weather", { city: "Bern" }]);
    const history = await client.threads.getHistory(thread, { limit: 100 });
    assert.deepEqual(history[0].values.messages, values.messages);
    return thread;
}

// Editing a message and regenerating an answer: a run from the checkpoint before it.
async function aMessageIsSaidDifferently(thread) {
    const history = await client.threads.getHistory(thread, { limit: 100 });
    const first = history.findLast((state) => (state.values.messages ?? []).length === 1);
    const shown = await submit(thread, human("hello", "m1b"), {
        checkpoint: first.parent_checkpoint,
    });
    assert.deepEqual(
        shown.values.messages.map((m) => m.content),
        ["hello", "You said: hello"],
    );
    const again = await submit(thread, undefined, {
        checkpoint: (await client.threads.getHistory(thread, { limit: 100 }))[1].checkpoint,
    });
    assert.equal(again.values.messages.length, 2);
    assert.notEqual(again.values.messages[1].id, shown.values.messages[1].id);
}

// The agent inbox: an action request, and the four kinds of answers.
async function anInterruptIsAnswered(answer, check) {
    const { thread_id: thread } = await client.threads.create({ metadata: { graph_id: "agent" } });
    const asks = { config: { configurable: { ...configurable, approval: ["weather"] } } };
    const asked = await submit(thread, human('use weather with {"city": "Oslo"}', "m1"), asks);
    const [interrupt] = [asked.interrupts].flat();
    assert.ok(interrupt.id);
    const question = [interrupt.value].flat()[0];
    assert.deepEqual(question.action_request, { action: "weather", args: { city: "Oslo" } });
    assert.deepEqual(Object.keys(question.config).sort(), [
        "allow_accept",
        "allow_edit",
        "allow_ignore",
        "allow_respond",
    ]);
    const before = await client.threads.get(thread);
    assert.equal(before.status, "interrupted");
    assert.deepEqual(Object.values(before.interrupts).flat()[0].value, interrupt.value);

    const shown = await submit(thread, undefined, { command: { resume: [answer] }, ...asks });
    const { values, tasks } = await client.threads.getState(thread);
    assert.deepEqual(tasks, []);
    assert.deepEqual(shown.values.messages, values.messages);
    assert.deepEqual(
        values.messages.map((m) => m.type),
        ["human", "ai", "tool", "ai"],
    );
    check(values.messages);
    assert.equal((await client.threads.get(thread)).status, "idle");
}

// The first request checks that the server is there.
async function theServerSaysWhoItIs() {
    const answer = await fetch(`${url}/info`, { headers: { "X-Api-Key": "" } });
    assert.ok(answer.ok);
}

// The list at the side: by the graph when the assistant is named so, by the assistant when it is an id. The
// metadata of a new thread is empty; the first run fills it.
async function theSideListsThreads() {
    const { thread_id: thread } = await client.threads.create({});
    const content = [{ type: "text", text: "hello list" }];
    await submit(thread, { messages: [{ id: "m1", type: "human", content }] });
    const { assistant_id: assistant } = await client.assistants.get("agent");
    for (const metadata of [{ graph_id: "agent" }, { assistant_id: assistant }]) {
        const found = await client.threads.search({ metadata, limit: 100 });
        const [first] = found.find((one) => one.thread_id === thread).values.messages;
        assert.deepEqual([first.type, first.content], ["human", content]);
    }
    assert.deepEqual(
        await client.threads.search({ metadata: { graph_id: "nobody" }, limit: 100 }),
        [],
    );
}

// Its own form of questions and answers, beside an empty input.
async function aQuestionOfTheMiddlewareIsAnswered(decision, check) {
    const { thread_id: thread } = await client.threads.create({});
    const asks = { config: { configurable: { ...configurable, approval: ["weather"] } } };
    const asked = await submit(thread, human('use weather with {"city": "Oslo"}', "m1"), asks);
    const [{ value }] = [asked.interrupts].flat();
    const [request] = value.action_requests;
    assert.deepEqual([request.name, request.args], ["weather", { city: "Oslo" }]);
    assert.equal(typeof request.description, "string");
    assert.deepEqual(value.review_configs, [
        { action_name: "weather", allowed_decisions: ["approve", "edit", "reject"] },
    ]);
    await submit(thread, {}, { command: { resume: { decisions: [decision] } }, ...asks });
    const { values } = await client.threads.getState(thread);
    assert.deepEqual(
        values.messages.map((m) => m.type),
        ["human", "ai", "tool", "ai"],
    );
    check(values.messages[2].content);
}

// "Mark as resolved" works as in LangGraph: the interrupt stays. A new message instead of a reply brings a result
// for every call that lacks one, and the thread continues.
async function aQuestionIsLeft() {
    const { thread_id: thread } = await client.threads.create({});
    const asks = { config: { configurable: { ...configurable, approval: ["weather"] } } };
    await submit(thread, human('use weather with {"city": "Oslo"}', "m1"), asks);
    await submit(thread, {}, { command: { goto: "__end__" }, ...asks });
    const { values } = await client.threads.getState(thread);
    const [{ id, name }] = values.messages[1].tool_calls;
    const handled = {
        type: "tool",
        tool_call_id: id,
        id: "do-not-render-1",
        name,
        content: "Successfully handled tool call.",
    };
    const shown = await submit(
        thread,
        { messages: [handled, ...human("hello again", "m2").messages] },
        asks,
    );
    assert.equal(shown.values.messages.at(-1).content, "You said: hello again");
    const { next } = await client.threads.getState(thread);
    assert.deepEqual([next, (await client.threads.get(thread)).status], [[], "idle"]);
}

// A second tab, or a reload: the history is read, and the run joined by its id.
async function aRunIsJoinedAgain() {
    const { thread_id: thread } = await client.threads.create({});
    const run = await client.runs.create(thread, "agent", {
        input: human("slowly one two three", "m1"),
        config: { configurable },
        streamMode: ["values", "messages-tuple", "custom"],
        streamSubgraphs: true,
        streamResumable: true,
        onDisconnect: "continue",
    });
    const shown = new Shown();
    for await (const part of client.runs.joinStream(thread, run.run_id, { lastEventId: "-1" }))
        shown.take(part);
    const { values } = await client.threads.getState(thread);
    assert.deepEqual(shown.values.messages, values.messages);
    assert.equal(shown.messages.get(values.messages[1].id).content, values.messages[1].content);
}

await theServerSaysWhoItIs();
await theSideListsThreads();
await aQuestionOfTheMiddlewareIsAnswered({ type: "approve" }, (said) =>
    assert.equal(said, "sunny in Oslo"),
);
await aQuestionOfTheMiddlewareIsAnswered(
    { type: "edit", edited_action: { name: "weather", args: { city: "Rome" } } },
    (said) => assert.equal(said, "sunny in Rome"),
);
await aQuestionOfTheMiddlewareIsAnswered({ type: "reject", message: "not now" }, (said) =>
    assert.match(said, /not now/),
);
await aQuestionIsLeft();
await aRunIsJoinedAgain();
const thread = await aTurnIsShownAsItIsStored();
await aMessageIsSaidDifferently(thread);
await anInterruptIsAnswered({ type: "accept", args: null }, (messages) => {
    assert.equal(messages[2].content, "sunny in Oslo");
});
await anInterruptIsAnswered(
    { type: "edit", args: { action: "weather", args: { city: "Rome" } } },
    (messages) => {
        assert.equal(messages[2].content, "sunny in Rome");
    },
);
await anInterruptIsAnswered({ type: "response", args: "no need" }, (messages) => {
    assert.match(messages[2].content, /no need/);
});
await anInterruptIsAnswered({ type: "ignore", args: null }, (messages) => {
    assert.doesNotMatch(messages[2].content, /sunny/);
});
console.log("done");
