// The calls of useStream and agent-chat-ui on a thread that is a room: nothing changes for them, and
// the room shows their turns.
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { getBranchContext, getMessagesMetadataMap } from "@langchain/langgraph-sdk/ui";
import { apiUrl, beyondPeer, client, collect, human, newThread, of, texts, until } from "./lib.mjs";

const ROOMS = beyondPeer("has no rooms");

/** The generic client of JavaScript: the endpoints of rooms have no methods. */
async function call(method, path, body) {
    const response = await fetch(apiUrl + path, {
        method,
        headers: { "content-type": "application/json" },
        body: body && JSON.stringify(body),
    });
    assert.ok(response.ok, `${method} ${path}: ${response.status}`);
    return response.json();
}

async function newRoom() {
    const thread = await newThread();
    await call("POST", `/threads/${thread}/room/messages`, { content: "before" });
    return thread;
}

const chat = (thread) => call("GET", `/threads/${thread}/room/messages`);

/** As useStream submits. */
const submit = (thread, graph, input, options = {}) =>
    collect(
        client.runs.stream(thread, graph, {
            input,
            streamMode: ["values", "messages-tuple", "custom"],
            streamSubgraphs: true,
            streamResumable: true,
            onDisconnect: "continue",
            ...options,
        }),
    );

/** JSON without what differs between two equal runs: ids and times. */
const same = (value) =>
    JSON.stringify(value).replace(
        /[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}|[0-9a-f]{32}|\d{4}-\d\d-\d\dT[\d:.]+\+00:00/g,
        "?",
    );

const withoutIds = (parts) => parts.map(({ event, data }) => ({ event, data }));

describe("rooms", () => {
    for (const graph of ["echo", "tools", "approval", "nested"])
        test(`useStream shows a run of ${graph} as on any other thread`, ROOMS, async () => {
            const shown = [];
            for (const thread of [await newThread(), await newRoom()]) {
                const parts = withoutIds(await submit(thread, graph, human("hi", "m1")));
                const history = await client.threads.getHistory(thread, { limit: 1000 });
                shown.push(same([parts, history, await client.threads.getState(thread)]));
            }
            assert.equal(shown[0], shown[1]);
        });

    test("show the turns of useStream, with their senders", ROOMS, async () => {
        const thread = await newRoom();
        await submit(thread, "echo", human("hi", "m1"));
        const [, question, answer] = await chat(thread);
        assert.deepEqual(
            [question.id, question.content, question.sender],
            ["m1", "hi", { type: "person", id: "user", name: "User" }],
        );
        assert.deepEqual(
            [answer.sender.type, answer.content, answer.reply_to],
            ["agent", "You said: hi", "m1"],
        );
    });

    test("show an edit of useStream in place of the turn", ROOMS, async () => {
        const thread = await newRoom();
        await submit(thread, "echo", human("one", "m1"));
        await submit(thread, "echo", human("two", "m2"));
        const history = await client.threads.getHistory(thread, { limit: 1000 });
        const metadata = getMessagesMetadataMap({
            initialValues: undefined,
            history,
            getMessages: (values) => values.messages ?? [],
            branchContext: getBranchContext("", history),
        });
        const { thread_id, ...checkpoint } = metadata[2].firstSeenState.parent_checkpoint;
        const parts = await submit(thread, "echo", human("other", "m3"), { checkpoint });
        assert.deepEqual(texts(of(parts, "values").at(-1)), [
            "one",
            "You said: one",
            "other",
            "You said: other",
        ]);
        const visible = (await chat(thread)).filter((message) => message.state === "ok");
        assert.deepEqual(
            visible.map((message) => message.content),
            ["before", "one", "You said: one", "other", "You said: other"],
        );
    });

    test("wait for the answer that agent-chat-ui gives", ROOMS, async () => {
        const thread = await newRoom();
        await submit(thread, "approval", human("may I?", "m1"));
        const record = await client.threads.get(thread);
        assert.equal(record.status, "interrupted");
        assert.equal((await chat(thread)).at(-1).state, "pending");
        await submit(thread, "approval", undefined, { command: { resume: "yes" } });
        assert.equal((await client.threads.get(thread)).status, "idle");
        assert.deepEqual(
            (await chat(thread)).map((message) => message.state).filter((state) => state !== "ok"),
            [],
        );
    });

    test("are found and read by the requests of agent-chat-ui", ROOMS, async () => {
        assert.ok((await fetch(`${apiUrl}/info`, { headers: { "X-Api-Key": "" } })).ok);
        const { thread_id: thread } = await client.threads.create({
            metadata: { graph_id: "echo" },
        });
        await call("POST", `/threads/${thread}/room/messages`, { content: "before" });
        await submit(thread, "echo", human("hi", "m1"));
        const found = await client.threads.search({ metadata: { graph_id: "echo" }, limit: 100 });
        const [room] = found.filter((each) => each.thread_id === thread);
        assert.deepEqual(texts(room.values), ["hi", "You said: hi"]);
    });

    test("are joined while an agent answers a chat message", ROOMS, async () => {
        const thread = await newRoom();
        const { assistant_id } = await client.assistants.create({
            graphId: "slow",
            name: `Slow ${thread}`,
        });
        const { runs } = await call("POST", `/threads/${thread}/room/messages`, {
            content: "go",
            mentions: [assistant_id],
        });
        const parts = await collect(
            client.runs.joinStream(thread, runs[0].run_id, { lastEventId: "-1" }),
        );
        const said = of(parts, "messages").map(([message]) => message.content);
        assert.equal(said.join(""), "one two three four five six seven eight nine ten");
        await until(async () => (await chat(thread)).length === 3);
        await client.assistants.delete(assistant_id);
    });
});
