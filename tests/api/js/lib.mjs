// Shared by the suites: the client, a record of the calls, helpers for tests.
import assert from "node:assert/strict";
import { setTimeout as sleep } from "node:timers/promises";
import { Client } from "@langchain/langgraph-sdk";

export const apiUrl = process.env.HEDDLE_API_URL;
export const isPeer = process.env.HEDDLE_API_TARGET === "peer";
export const RESOURCES = ["assistants", "threads", "runs", "crons", "store"];
export const called = new Set();

// maxRetries 0: a status that the client would try again is a failure here.
export const client = new Client({ apiUrl, apiKey: null, callerOptions: { maxRetries: 0 } });

/** Public methods of a resource: those of its own class, not of the base class. */
export const methods = (resource) =>
    Object.getOwnPropertyNames(Object.getPrototypeOf(client[resource])).filter(
        (name) => name !== "constructor",
    );

for (const resource of RESOURCES)
    for (const name of methods(resource)) {
        const method = client[resource][name];
        client[resource][name] = (...args) => {
            called.add(`${resource}.${name}`);
            return method.apply(client[resource], args);
        };
    }

/** Options of a test that the peer cannot pass. */
export const beyondPeer = (what) => ({ skip: isPeer && `the peer: ${what}` });

export const human = (content, id) => ({
    messages: [{ type: "human", content, ...(id && { id }) }],
});
export const texts = (values) => values.messages.map((message) => message.content);
export const newThread = async () => (await client.threads.create()).thread_id;
export const unknown = () => crypto.randomUUID();

export async function collect(stream) {
    const parts = [];
    for await (const part of stream) parts.push(part);
    return parts;
}

export const of = (parts, event) =>
    parts.filter((part) => part.event === event).map((part) => part.data);

/** The call is refused with that status. */
export const refused = (promise, status) =>
    assert.rejects(promise, (error) => {
        assert.equal(error.status, status, error.message);
        return true;
    });

export async function until(check, seconds = 60) {
    for (let tries = 0; tries < seconds * 50; tries++) {
        const found = await check();
        if (found) return found;
        await sleep(20);
    }
    assert.fail(`did not become true in ${seconds} s: ${check}`);
}
