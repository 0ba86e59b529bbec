// The branch tree that useStream shows, built by the client's own code from our /history.
//
// A conversation is driven as useStream drives it: every submit names the head of the branch that is
// shown, an edit or a retry names the parent of the state in which the message was first seen.
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { getBranchContext, getMessagesMetadataMap } from "@langchain/langgraph-sdk/ui";
import { client, collect, human, newThread, texts, until } from "./lib.mjs";

class Conversation {
    branch = "";

    static async begin(graph = "echo") {
        const made = new Conversation();
        Object.assign(made, { graph, thread: await newThread(), ids: 0 });
        await made.load();
        return made;
    }

    async load() {
        this.history = await client.threads.getHistory(this.thread, { limit: 1000 });
        this.context = getBranchContext(this.branch, this.history);
        return this;
    }

    /** The visible messages. */
    get shown() {
        return this.context.threadHead ? texts(this.context.threadHead.values) : [];
    }

    metadata(index) {
        const all = getMessagesMetadataMap({
            initialValues: undefined,
            history: this.history,
            getMessages: (values) => values.messages ?? [],
            branchContext: this.context,
        });
        return all.at(index);
    }

    options(input, checkpoint) {
        const { thread_id, ...rest } = checkpoint ?? {};
        return {
            input,
            checkpoint: checkpoint ? rest : undefined,
            streamMode: ["values", "messages-tuple"],
        };
    }

    stream(input, checkpoint) {
        return client.runs.stream(this.thread, this.graph, this.options(input, checkpoint));
    }

    async submit(input, checkpoint) {
        // As useStream does: the branch of the checkpoint is shown, and on it what was made last.
        const branch = this.context.branchByCheckpoint[checkpoint?.checkpoint_id]?.branch;
        if (branch != null) this.branch = branch;
        await collect(this.stream(input, checkpoint));
        return this.load();
    }

    say(text) {
        return this.submit(human(text, `m${++this.ids}`), this.context.threadHead?.checkpoint);
    }

    edit(index, text) {
        return this.submit(
            human(text, `m${++this.ids}`),
            this.metadata(index).firstSeenState.parent_checkpoint,
        );
    }

    retry(index) {
        return this.submit(null, this.metadata(index).firstSeenState.parent_checkpoint);
    }

    async show(branch) {
        this.branch = branch;
        return this.load();
    }

    /** Each way through the tree, as what it shows in the end; the newest last. */
    ways() {
        const leaves = [];
        const walk = (sequence) => {
            const last = sequence.items.at(-1);
            if (last?.type === "fork") last.items.forEach(walk);
            else if (last) leaves.push(texts(last.value.values));
        };
        walk(this.context.branchTree);
        return leaves;
    }

    /** Shows every branch in turn; what each ends with. */
    async everyBranch() {
        const found = [];
        const paths = new Set(
            Object.values(this.context.branchByCheckpoint).flatMap((each) => each.branchOptions),
        );
        for (const path of paths) {
            await this.show(path);
            found.push(this.context.threadHead);
            for (const each of Object.values(this.context.branchByCheckpoint))
                each.branchOptions.forEach((option) => paths.add(option));
        }
        return found;
    }

    forks() {
        const found = [];
        const walk = (sequence) => {
            for (const item of sequence.items)
                if (item.type === "fork") {
                    found.push(item.items.length);
                    item.items.forEach(walk);
                }
        };
        walk(this.context.branchTree);
        return found;
    }
}

describe("the branch tree of the client", () => {
    test("of a first message", async () => {
        const chat = await Conversation.begin();
        assert.deepEqual(chat.shown, []);
        await chat.say("hi");
        assert.deepEqual(chat.shown, ["hi", "You said: hi"]);
        assert.deepEqual(chat.forks(), []);
        assert.deepEqual(
            chat.context.branchTree.items.map((item) => item.value.metadata.step),
            [-1, 0, 1],
        );
        for (const index of [0, 1]) {
            assert.equal(chat.metadata(index).branch, undefined);
            assert.equal(chat.metadata(index).firstSeenState.metadata.step, index);
        }
        await chat.say("more");
        assert.deepEqual(chat.shown, ["hi", "You said: hi", "more", "You said: more"]);
        assert.deepEqual(chat.forks(), []);
    });

    test("of three retries of one message", async () => {
        const chat = await Conversation.begin();
        await chat.say("hi");
        const ids = [chat.context.threadHead.values.messages[1].id];
        for (let n = 0; n < 3; n++) {
            await chat.retry(1);
            ids.push(chat.context.threadHead.values.messages[1].id);
            assert.deepEqual(chat.shown, ["hi", "You said: hi"]);
        }
        assert.equal(new Set(ids).size, 4, "each retry says something of its own");
        assert.deepEqual(chat.ways(), Array(4).fill(["hi", "You said: hi"]));
        const { branch, branchOptions } = chat.metadata(1);
        assert.equal(branch, branchOptions.at(-1), "the newest is shown");
        assert.ok(branchOptions.length >= 2);
        assert.equal(chat.metadata(0).branch, undefined, "the message before is not a branch");
        const heads = await chat.everyBranch();
        assert.deepEqual(new Set(heads.map((state) => state.values.messages[1].id)), new Set(ids));
    });

    test("of an edit", async () => {
        const chat = await Conversation.begin();
        await chat.say("one");
        await chat.say("two");
        await chat.edit(2, "two, edited");
        assert.deepEqual(chat.shown, [
            "one",
            "You said: one",
            "two, edited",
            "You said: two, edited",
        ]);
        assert.deepEqual(chat.forks(), [2]);
        const { branch, branchOptions } = chat.metadata(2);
        assert.equal(branchOptions.length, 2);
        assert.equal(branch, branchOptions[1]);
        assert.equal(chat.metadata(0).branch, undefined);
        await chat.show(branchOptions[0]);
        assert.deepEqual(chat.shown, ["one", "You said: one", "two", "You said: two"]);
        await chat.show(branchOptions[1]);
        assert.deepEqual(chat.shown.slice(2), ["two, edited", "You said: two, edited"]);
    });

    test("of an edit of the first message", async () => {
        const chat = await Conversation.begin();
        await chat.say("one");
        await chat.edit(0, "uno");
        assert.deepEqual(chat.shown, ["uno", "You said: uno"]);
        assert.equal(chat.metadata(0).branchOptions.length, 2);
        await chat.say("more");
        assert.deepEqual(chat.shown, ["uno", "You said: uno", "more", "You said: more"]);
        await chat.show(chat.metadata(0).branchOptions[0]);
        assert.deepEqual(chat.shown, ["one", "You said: one"]);
    });

    test("of an edit of an edited message", async () => {
        const chat = await Conversation.begin();
        await chat.say("one");
        await chat.edit(0, "two");
        await chat.edit(0, "three");
        assert.deepEqual(chat.shown, ["three", "You said: three"]);
        assert.deepEqual(
            chat
                .ways()
                .map((way) => way[0])
                .sort(),
            ["one", "three", "two"],
        );
        assert.ok(chat.metadata(0).branchOptions.length >= 2);
        const heads = await chat.everyBranch();
        assert.deepEqual(
            new Set(heads.map((state) => texts(state.values)[0])),
            new Set(["one", "two", "three"]),
        );
    });

    test("of a retry in the middle", async () => {
        const chat = await Conversation.begin();
        for (const text of ["one", "two", "three"]) await chat.say(text);
        const before = chat.shown;
        await chat.retry(3); // the answer to "two"
        assert.deepEqual(chat.shown, ["one", "You said: one", "two", "You said: two"]);
        assert.deepEqual(chat.forks(), [2]);
        const { branchOptions } = chat.metadata(3);
        assert.equal(branchOptions.length, 2);
        await chat.say("three again");
        assert.deepEqual(chat.shown.slice(4), ["three again", "You said: three again"]);
        await chat.show(chat.metadata(3).branchOptions[0]);
        assert.deepEqual(chat.shown, before, "the other branch is as it was");
        await chat.say("four");
        assert.deepEqual(
            chat.shown,
            [...before, "four", "You said: four"],
            "and goes on from where it was",
        );
    });

    test("while switching during a stream", async () => {
        const chat = await Conversation.begin("slow");
        await chat.say("one");
        await chat.edit(0, "uno");
        const [old, current] = chat.metadata(0).branchOptions;
        const head = chat.context.threadHead.checkpoint;
        const running = collect(chat.stream(human("due", "due"), head));
        await until(async () => (await client.runs.list(chat.thread)).length === 3);
        await chat.show(old);
        assert.equal(
            chat.shown[0],
            "one",
            "the other branch is there while a run works on this one",
        );
        assert.equal(chat.shown.length, 2);
        await chat.show(current);
        assert.deepEqual(chat.shown.slice(0, 1), ["uno"]);
        await running;
        await chat.show(old);
        assert.equal(
            chat.shown.length,
            2,
            "what was streamed did not go to the branch that was shown",
        );
        await chat.show(current);
        assert.deepEqual([chat.shown[0], chat.shown[2]], ["uno", "due"]);
        assert.deepEqual(chat.forks(), [2]);
    });

    test("of a state update", async () => {
        const chat = await Conversation.begin();
        await chat.say("one");
        const values = {
            messages: [{ type: "ai", content: "You never said that", id: "by-hand" }],
        };
        const { checkpoint } = chat.context.flatHistory.at(-2);
        await client.threads.updateState(chat.thread, { values, checkpoint, asNode: "reply" });
        await chat.load();
        assert.deepEqual(chat.shown, ["one", "You never said that"]);
        assert.equal(chat.metadata(1).branchOptions.length, 2);
    });

    test("of a history that is cut off", async () => {
        const chat = await Conversation.begin();
        for (const text of ["one", "two", "three"]) await chat.say(text);
        const history = await client.threads.getHistory(chat.thread, { limit: 4 });
        assert.equal(texts(getBranchContext("", history).threadHead.values).length, 6);
    });
});
