/**
 * Writes tests/data/foreign/js.json and values-js.json: data stored by LangGraph for JavaScript, and
 * the states it returns for it. The tests in C read them; nothing else needs Node.js.
 *
 *   cd js && npx tsx tests/lib/states.mjs
 **/
import { writeFileSync } from "node:fs";
import { AIMessage, HumanMessage } from "@langchain/core/messages";
import { Document } from "@langchain/core/documents";
import {
    Annotation,
    Command,
    END,
    MemorySaver,
    Send,
    START,
    StateGraph,
    entrypoint,
    interrupt,
    messagesStateReducer,
    task,
} from "@langchain/langgraph";
import { CanonicalSerializer } from "../../src/canonical.js";
import { render } from "../../src/runtime/render.js";
import { structureOf } from "../../src/runtime/structure.js";
import { hintOf } from "../../src/tuples.js";

const FOLDER = process.argv[2] ?? new URL("../../../tests/data/foreign/", import.meta.url).pathname;

// ---- values --------------------------------------------------------------

const VALUES = {
    plain: { a: [1, 2.5, null, true, "x"], b: {} },
    messages: [
        new HumanMessage({ content: "hi", id: "1" }),
        new AIMessage({ content: "yo", id: "2" }),
    ],
    set: new Set([1, "a"]),
    map: new Map([["a", 1]]),
    pattern: /a+/i,
    bytes: { data: new Uint8Array([1, 2, 255]) },
    undefined: { a: undefined },
    document: new Document({ pageContent: "text", metadata: { a: 1 } }),
    nested: [new Set([new Map([["k", [/x/]]])])],
};

async function values() {
    const stock = new MemorySaver().serde;
    const cases = [];
    for (const [name, value] of Object.entries(VALUES)) {
        const [type, data] = await stock.dumpsTyped(value);
        cases.push({
            name,
            type,
            data: Buffer.from(data).toString("base64"),
            shown: JSON.parse(render(value)),
        });
    }
    return cases;
}

// ---- states --------------------------------------------------------------

const CONTROL = ["__error__", "__interrupt__", "__resume__", "__scheduled__"];

/** Keeps values in the canonical encoding, as the server does. */
class Recorder extends MemorySaver {
    puts = [];
    /** Ids of tasks with writes. */
    finished = new Set();
    #counter = 0;

    #serializer = new CanonicalSerializer();

    getNextVersion(current) {
        const next = current === undefined ? 1 : parseInt(String(current), 10) + 1;
        return `${String(next).padStart(32, "0")}.0.${String(++this.#counter).padStart(15, "0")}`;
    }

    async #value(channel, value) {
        const [type, data] = await this.#serializer.dump(value, hintOf(channel));
        return [channel, type, Buffer.from(data).toString("base64")];
    }

    async put(config, checkpoint, metadata, newVersions) {
        const { channel_values, ...head } = checkpoint;
        const entry = {
            ns: config.configurable.checkpoint_ns ?? "",
            id: checkpoint.id,
            parent: config.configurable.checkpoint_id ?? null,
            checkpoint: JSON.parse(JSON.stringify(head)),
            metadata: JSON.parse(JSON.stringify(metadata)),
            new_versions: { ...newVersions },
            values: [],
        };
        this.puts.push(entry);
        for (const name of Object.keys(newVersions)) {
            if (name in channel_values)
                entry.values.push(await this.#value(name, channel_values[name]));
        }
        return super.put(config, checkpoint, metadata);
    }

    async putWrites(config, writes, taskId) {
        const entry = {
            ns: config.configurable.checkpoint_ns ?? "",
            id: config.configurable.checkpoint_id,
            task: taskId,
            path: "",
            writes: [],
        };
        this.puts.push(entry);
        if (writes.some(([name]) => !CONTROL.includes(name))) this.finished.add(taskId);
        for (const [name, value] of writes) entry.writes.push(await this.#value(name, value));
        return super.putWrites(config, writes, taskId);
    }
}

function place(config) {
    if (config === undefined) return null;
    const where = config.configurable;
    return {
        thread_id: where.thread_id,
        checkpoint_ns: where.checkpoint_ns ?? "",
        checkpoint_id: where.checkpoint_id ?? null,
        checkpoint_map: where.checkpoint_map ?? null,
    };
}

const interruptsOf = (list) => list.map(({ id, value }) => ({ id: id ?? null, value }));

function shownTask(one) {
    const isState = one.state !== undefined && "next" in one.state;
    return {
        id: one.id,
        name: one.name,
        path: one.path,
        error: one.error ?? null,
        interrupts: interruptsOf(one.interrupts),
        checkpoint: isState || one.state === undefined ? null : place(one.state),
        state: isState ? shown(one.state, true) : null,
        result: one.result ?? null,
    };
}

/**
 * The latest state, as LangGraph for Python returns it: tasks with open interrupts are in `next`,
 * also after a first reply; answered interrupts are gone.
 */
function live(state, saver) {
    const isFinished = (one) => saver.finished.has(one.id);
    return {
        ...state,
        next: state.tasks.filter((one) => !isFinished(one)).map((one) => one.name),
        tasks: state.tasks.map((one) => ({
            ...one,
            interrupts: isFinished(one) ? [] : one.interrupts,
            ...(one.state !== undefined && "next" in one.state
                ? { state: live(one.state, saver) }
                : {}),
        })),
    };
}

/** In the format of the HTTP API (ThreadState). */
function shown(state, isInner = false) {
    const isThere = state.metadata !== undefined;
    const parent = place(state.parentConfig);
    const map = place(state.config)?.checkpoint_map;
    // The parent has the same namespace; JavaScript omits it.
    if (parent !== null && map)
        parent.checkpoint_map = { ...map, [parent.checkpoint_ns]: parent.checkpoint_id };
    const { thread_id, ...metadata } = state.metadata ?? {};
    return {
        values: state.values ?? null,
        next: state.next,
        tasks: state.tasks.map(shownTask),
        metadata,
        created_at: state.createdAt ?? null,
        checkpoint: isThere || isInner ? place(state.config) : null,
        parent_checkpoint: parent,
        interrupts: state.tasks.flatMap((one) => interruptsOf(one.interrupts)),
        checkpoint_id: isThere ? place(state.config).checkpoint_id : null,
        parent_checkpoint_id: parent?.checkpoint_id ?? null,
    };
}

const concat = { reducer: (a, b) => a.concat(b), default: () => [] };
const Chat = Annotation.Root({
    messages: Annotation({ reducer: messagesStateReducer, default: () => [] }),
    log: Annotation(concat),
    name: Annotation,
});

const chat = () =>
    new StateGraph(Chat)
        .addNode("model", () => ({
            messages: [new AIMessage({ content: "hello", id: "a1" })],
            name: "x",
        }))
        .addEdge(START, "model");

const parallel = () =>
    new StateGraph(Chat)
        .addNode("ask", () => ({ name: interrupt("which?") }))
        .addNode("done", () => ({ messages: [new HumanMessage({ content: "m", id: "h2" })] }))
        .addNode("join", () => ({ log: ["join"] }))
        .addEdge(START, "ask")
        .addEdge(START, "done")
        .addEdge(["ask", "done"], "join");

const twice = () =>
    new StateGraph(Chat)
        .addNode("ask", () => ({ log: [interrupt({ q: 1 }), interrupt({ q: 2 })] }))
        .addEdge(START, "ask");

const sends = () =>
    new StateGraph(Chat)
        .addNode("plan", () => ({ log: ["plan"] }))
        .addNode("work", (arg) => ({
            messages: [
                new HumanMessage({
                    content: String(arg.n === 1 ? interrupt(arg.n) : arg.n),
                    id: `w${arg.n}`,
                }),
            ],
        }))
        .addEdge(START, "plan")
        .addConditionalEdges("plan", () => [0, 1, 2].map((n) => new Send("work", { n })), ["work"]);

function nested(checkpointer) {
    const inner = new StateGraph(Chat)
        .addNode("first", () => ({ log: ["first"] }))
        .addNode("ask", () => ({ log: [interrupt("inner?")] }))
        .addEdge(START, "first")
        .addEdge("first", "ask")
        .compile(checkpointer === undefined ? {} : { checkpointer });
    const middle = new StateGraph(Chat)
        .addNode("inner", inner)
        .addEdge(START, "inner")
        .compile(checkpointer === undefined ? {} : { checkpointer });
    return new StateGraph(Chat)
        .addNode("before", () => ({ log: ["before"] }))
        .addNode("sub", middle)
        .addEdge(START, "before")
        .addEdge("before", "sub");
}

const deferred = () =>
    new StateGraph(Chat)
        .addNode("a", () => ({ name: "a" }))
        .addNode("b", () => ({
            messages: [new HumanMessage({ content: interrupt("wait"), id: "b" })],
        }))
        .addNode("last", () => ({ log: ["last"] }), { defer: true })
        .addEdge(START, "a")
        .addEdge(START, "b")
        .addEdge("a", "last")
        .addEdge("b", "last");

const failing = () =>
    new StateGraph(Chat)
        .addNode("good", () => ({ name: "n" }))
        .addNode("bad", () => {
            throw new TypeError("no");
        })
        .addEdge(START, "good")
        .addEdge("good", "bad");

const branching = () =>
    new StateGraph(Chat)
        .addNode("a", () => ({ log: ["a"] }))
        .addNode("b", () => ({ log: ["b"] }))
        .addEdge(START, "a")
        .addConditionalEdges("a", () => "b", ["b", END]);

const typed = () =>
    new StateGraph(
        Annotation.Root({
            set: Annotation,
            map: Annotation,
            pattern: Annotation,
            data: Annotation,
        }),
    )
        .addNode("fill", () => ({
            set: new Set([1]),
            map: new Map([["k", 1]]),
            pattern: /a/g,
            data: { bytes: new Uint8Array([1]) },
        }))
        .addEdge(START, "fill");

const jumping = () =>
    new StateGraph(Chat)
        .addNode("go", () => new Command({ update: { log: ["go"] }, goto: "there" }), {
            ends: ["there"],
        })
        .addNode("there", () => ({ name: interrupt("there?") }))
        .addEdge(START, "go");

function functional(saver) {
    const double = task("double", async (n) => n * 2);
    return entrypoint({ checkpointer: saver, name: "flow" }, async (n) =>
        entrypoint.final({ value: (await double(n)) + interrupt("more?"), save: n }),
    );
}

const OWN = "nested with a memory of its own";
const CLOSED = [OWN, "functional"];

async function run(graph, inputs, saver, subject) {
    const config = { configurable: { thread_id: "t" } };
    for (const given of inputs) {
        try {
            await graph.invoke(given, config);
        } catch (error) {
            if (!(error instanceof TypeError)) throw error;
        }
        const states = [
            { subgraphs: false, state: shown(live(await graph.getState(config), saver)) },
        ];
        // JavaScript does not find the states of subgraphs with their own memory.
        const hasOwn = subject.name === OWN;
        if (!hasOwn)
            states.push({
                subgraphs: true,
                state: shown(live(await graph.getState(config, { subgraphs: true }), saver)),
            });
        for await (const state of graph.getStateHistory(config)) {
            states.push({
                id: state.config.configurable.checkpoint_id,
                subgraphs: false,
                state: shown(state),
            });
        }
        for (const one of (await graph.getState(config)).tasks) {
            if (one.state === undefined || hasOwn) continue;
            const ns = one.state.configurable.checkpoint_ns;
            const inner = await graph.getState({
                configurable: { thread_id: "t", checkpoint_ns: ns },
            });
            states.push({ ns, subgraphs: false, state: shown(live(inner, saver)) });
        }
        subject.steps.push({ puts: saver.puts, states });
        saver.puts = [];
    }
}

async function subjectOf(name, builder, inputs, options = {}) {
    const saver = new Recorder();
    const graph =
        builder === functional
            ? builder(saver)
            : builder().compile({ checkpointer: saver, ...options });
    const subject = {
        name,
        ids: "js",
        structure: structureOf(graph),
        is_closed: CLOSED.includes(name),
        steps: [],
    };
    await run(graph, inputs, saver, subject);
    return subject;
}

const hi = () => ({ messages: [new HumanMessage({ content: "hi", id: "h1" })] });
const resume = (answer) => new Command({ resume: answer });

const subjects = [
    await subjectOf("chat", chat, [
        hi(),
        { messages: [new HumanMessage({ content: "more", id: "h3" })] },
    ]),
    await subjectOf("nothing is written", chat, [{ name: "only" }]),
    await subjectOf("breakpoint", chat, [hi(), null], { interruptBefore: ["model"] }),
    await subjectOf("parallel", parallel, [hi(), resume("this")]),
    await subjectOf("two questions", twice, [hi(), resume("a"), resume("b")]),
    await subjectOf("sends", sends, [hi(), resume("r")]),
    await subjectOf("branching", branching, [hi()]),
    await subjectOf("nested", nested, [hi(), resume("r")]),
    await subjectOf(OWN, () => nested(true), [hi(), resume("r"), hi()]),
    await subjectOf("deferred", deferred, [hi(), resume("r")]),
    await subjectOf("failing", failing, [hi()]),
    await subjectOf("typed", typed, [{}]),
    await subjectOf("jumping", jumping, [hi(), resume("r")]),
    await subjectOf("functional", functional, [3, resume(4), 5]),
];

writeFileSync(`${FOLDER}/values-js.json`, `${JSON.stringify(await values(), null, 1)}\n`);
writeFileSync(`${FOLDER}/js.json`, `${render(subjects)}\n`);
