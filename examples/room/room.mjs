// Two people and two agents in one room, with the official TypeScript SDK. It has no public generic
// client, so the endpoints of rooms are called with fetch.
//
// See README.md for the two programs that must run, and for the keys of the people.
import { Client } from "@langchain/langgraph-sdk";

const apiUrl = process.argv[2] ?? "http://localhost:2024";

/** A person: the client, and the calls that it has no methods for. */
function person(apiKey) {
    const client = new Client({ apiUrl, apiKey });
    const call = async (method, path, body) => {
        const response = await fetch(apiUrl + path, {
            method,
            headers: { "content-type": "application/json", "x-api-key": apiKey },
            body: body && JSON.stringify(body),
        });
        if (!response.ok) throw new Error(`${method} ${path}: ${await response.text()}`);
        return response.json();
    };
    return { client, call };
}

const ada = person(process.env.ADA_KEY);
const ben = person(process.env.BEN_KEY);

async function makeAgent(name, task) {
    const config = {
        configurable: { model_name: "openai:mock", system_prompt: `You are a ${task}.` },
    };
    return (await ada.client.assistants.create({ graphId: "agent", name, config })).assistant_id;
}

async function show(title, room) {
    console.log(`\n${title}`);
    for (const { seq, sender, state, content } of await ben.call("GET", `${room}/messages`))
        console.log(`  ${seq} ${sender.name}${state === "ok" ? "" : ` [${state}]`}: ${content}`);
}

const { thread_id: thread } = await ada.client.threads.create();
const room = `/threads/${thread}/room`;

// Ada shares her room with Ben, and adds two agents of hers that both may mention.
await ada.call("POST", `/threads/${thread}/participants`, {
    issuer: "key",
    subject: "ben",
    role: "editor",
});
const agents = [await makeAgent("Planner", "planner"), await makeAgent("Critic", "critic")];
await ada.call("PUT", room, { agents: agents.map((assistant_id) => ({ assistant_id })) });

// Ben follows the room. Its events have no type in the SDK.
const seen = [];
const stop = new AbortController();
const reading = (async () => {
    const options = { streamMode: "room", lastEventId: "-", signal: stop.signal };
    for await (const { event, data } of ben.client.threads.joinStream(thread, options))
        seen.push({ event, data });
})().catch(() => {});
const until = async (isSeen) => {
    while (!seen.some(isSeen)) await new Promise((wake) => setTimeout(wake, 20));
};
const answers = (id) => (entry) => entry.data?.message?.reply_to === id;

const first = await ada.call("POST", `${room}/messages`, {
    content: "@Planner three days in Lisbon, please",
});
await until(answers(first.message.id));
const second = await ben.call("POST", `${room}/messages`, {
    content: "@Critic is this a good plan?",
});
await until(answers(second.message.id));
await show("The chat, as Ben sees it:", room);

// Ada edits her message: both answers are made again.
const content = "@Planner three days in Porto, please";
const { cascade } = await ada.call("PATCH", `${room}/messages/${first.message.id}`, { content });
await until(({ data }) => data?.cascade?.status === "done");
await show("The chat after the edit:", room);

const path = `/threads/${thread}/cascades/${cascade.cascade_id}`;
console.log(
    "\nAfter the undo the cascade is",
    (await ada.call("POST", path, { action: "undo" })).status,
);

stop.abort();
await reading;
for (const assistant of agents) await ada.client.assistants.delete(assistant);
