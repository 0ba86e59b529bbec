// CopilotKit's way to a LangGraph server: LangGraphAgent of @ag-ui/langgraph. Ends with 0 when the
// events that its interface is made of are right.
//
//   node copilotkit.mjs URL MODEL_URL TOOL_JSON
import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { LangGraphAgent } from "@ag-ui/langgraph";

const [url, model, tool] = process.argv.slice(2);
const configurable = {
    base_url: model,
    custom_model_name: "mock",
    custom_api_key: "sk-mock",
    http_tools: [JSON.parse(tool)],
};

function makeAgent(threadId, more = {}) {
    return new LangGraphAgent({
        deploymentUrl: url,
        graphId: "agent",
        threadId,
        assistantConfig: { configurable: { ...configurable, ...more } },
    });
}

// One run: all its events, which must be well-formed: begun, ended, everything closed.
async function run(agent, options = {}) {
    const events = [];
    await agent.runAgent(
        { runId: randomUUID(), ...options },
        { onEvent: ({ event }) => void events.push(event) },
    );
    assert.equal(events[0].type, "RUN_STARTED");
    assert.equal(events.at(-1).type, "RUN_FINISHED", JSON.stringify(events.at(-1)));
    return events;
}

const of = (events, type) => events.filter((event) => event.type === type);
const textOf = (events) =>
    of(events, "TEXT_MESSAGE_CONTENT")
        .map((event) => event.delta)
        .join("");
// The state at the end. (The client's own list has results last: the adapter gives them ids of its own.)
const stored = (events) => of(events, "MESSAGES_SNAPSHOT").at(-1).messages;
const say = (agent, content) => agent.addMessage({ id: randomUUID(), role: "user", content });

async function textIsStreamed() {
    const agent = makeAgent(randomUUID());
    say(agent, "hello out there");
    const events = await run(agent);
    assert.equal(textOf(events), "You said: hello out there");
    assert.equal(of(events, "TEXT_MESSAGE_CONTENT").length, 5);
    const [start] = of(events, "TEXT_MESSAGE_START");
    const answer = agent.messages.at(-1);
    assert.deepEqual([answer.role, answer.content], ["assistant", "You said: hello out there"]);
    assert.equal(answer.id, start.messageId, "the id while it streams is the id in the state");
    assert.ok(
        of(events, "STATE_SNAPSHOT").length > 0 && of(events, "MESSAGES_SNAPSHOT").length > 0,
    );
    assert.ok(of(events, "STEP_STARTED").some((event) => event.stepName === "model"));

    say(agent, "and again");
    const next = await run(agent);
    assert.equal(textOf(next), "You said: and again");
    assert.deepEqual(
        agent.messages.map((message) => message.role),
        ["user", "assistant", "user", "assistant"],
    );
}

// (Of several calls in one message the adapter itself gives all arguments to the first.)
async function aCallOfAServersToolIsSeen() {
    const agent = makeAgent(randomUUID());
    say(agent, 'use weather with {"city": "Bern"}');
    const events = await run(agent);
    const [start] = of(events, "TOOL_CALL_START");
    assert.equal(start.toolCallName, "weather");
    const args = of(events, "TOOL_CALL_ARGS")
        .map((event) => event.delta)
        .join("");
    assert.deepEqual(JSON.parse(args), { city: "Bern" });
    const results = of(events, "TOOL_CALL_RESULT");
    assert.deepEqual(
        results.map((event) => [event.toolCallId, event.content]),
        [[start.toolCallId, "sunny in Bern"]],
    );
    assert.equal(textOf(events), "The tools said: sunny in Bern");
    const [, call, result, answer] = stored(events);
    assert.equal(call.toolCalls[0].id, start.toolCallId);
    assert.equal(result.content, "sunny in Bern");
    assert.equal(answer.content, "The tools said: sunny in Bern");
}

// Human in the loop in the browser: the run ends with the call, the answer comes with the next one.
async function aToolOfTheClientIsAnsweredInTheNextRun() {
    const agent = makeAgent(randomUUID());
    const tools = [
        {
            name: "confirm",
            description: "Asks the user.",
            parameters: {
                type: "object",
                properties: { question: { type: "string" } },
                required: ["question"],
            },
        },
    ];
    say(agent, 'use confirm with {"question": "really?"} and use weather with {"city": "Oslo"}');
    const events = await run(agent, { tools });
    const [call] = of(events, "TOOL_CALL_START").filter(
        (event) => event.toolCallName === "confirm",
    );
    assert.ok(call, "the client sees the call");
    assert.deepEqual(
        of(events, "TOOL_CALL_RESULT").map((event) => event.content),
        ["sunny in Oslo"],
    );
    assert.ok(
        !agent.messages.some(
            (message) => message.role === "tool" && message.toolCallId === call.toolCallId,
        ),
    );

    agent.addMessage({
        id: randomUUID(),
        role: "tool",
        toolCallId: call.toolCallId,
        content: "yes, really",
    });
    const next = await run(agent, { tools });
    assert.match(textOf(next), /yes, really/);
    assert.match(stored(next).at(-1).content, /yes, really/);
    assert.equal(stored(next).filter((message) => message.role === "tool").length, 2);
}

async function anInterruptIsShownAndAnswered() {
    const agent = makeAgent(randomUUID(), { approval: true });
    say(agent, 'use weather with {"city": "Suva"}');
    const events = await run(agent);
    const [interrupt] = of(events, "CUSTOM").filter((event) => event.name === "on_interrupt");
    const value = [
        typeof interrupt.value === "string" ? JSON.parse(interrupt.value) : interrupt.value,
    ].flat()[0];
    assert.deepEqual(value.action_request, { action: "weather", args: { city: "Suva" } });
    assert.equal(of(events, "TOOL_CALL_RESULT").length, 0);

    const again = await run(agent);
    assert.equal(of(again, "CUSTOM").filter((event) => event.name === "on_interrupt").length, 1);

    const resumed = await run(agent, {
        forwardedProps: { command: { resume: JSON.stringify([{ type: "accept" }]) } },
    });
    assert.deepEqual(
        of(resumed, "TOOL_CALL_RESULT").map((event) => event.content),
        ["sunny in Suva"],
    );
    assert.equal(textOf(resumed), "The tools said: sunny in Suva");
    assert.equal(of(resumed, "CUSTOM").filter((event) => event.name === "on_interrupt").length, 0);
    assert.deepEqual(
        stored(resumed).map((message) => message.role),
        ["user", "assistant", "tool", "assistant"],
    );
}

await textIsStreamed();
await aCallOfAServersToolIsSeen();
await aToolOfTheClientIsAnsweredInTheNextRun();
await anInterruptIsShownAndAnswered();
console.log("done");
process.exit(0); // the adapter's connections are kept open
