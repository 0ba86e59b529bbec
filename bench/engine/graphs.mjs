/*
 * The graphs of bench/engine in LangGraph for JavaScript: one workload, one line of JSON.
 *
 *     node graphs.mjs SAVER WORKLOAD SECONDS [AT_ONCE]
 *
 * The same as graphs.py; AT_ONCE runs are awaited together. Packages are looked up
 * from BENCH_MODULES.
 */
import { createRequire } from "node:module";
import { randomUUID } from "node:crypto";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { pathToFileURL } from "node:url";

const modules = createRequire(path.join(process.env.BENCH_MODULES, "package.json"));
/* The ES build, so that every package sees the same classes. */
const load = (name) => import(pathToFileURL(modules.resolve(name).replace(/\.cjs$/, ".js")).href);

const { AIMessage } = await load("@langchain/core/messages");
const { Annotation, END, MemorySaver, MessagesAnnotation, START, Send, StateGraph } =
    await load("@langchain/langgraph");

const TEXT = "word ".repeat(100); // 500 bytes

const echo = () =>
    new StateGraph(MessagesAnnotation)
        .addNode("reply", (state) => ({ messages: [new AIMessage(state.messages.at(-1).content)] }))
        .addEdge(START, "reply")
        .addEdge("reply", END);

const loop = () =>
    new StateGraph(
        Annotation.Root({ count: Annotation({ reducer: (a, b) => a + b, default: () => 0 }) }),
    )
        .addNode("work", () => ({ count: 1 }))
        .addEdge(START, "work")
        .addConditionalEdges("work", (state) => (state.count < 5 ? "work" : END), ["work", END]);

const fanout = () =>
    new StateGraph(
        Annotation.Root({
            n: Annotation(),
            squares: Annotation({ reducer: (a, b) => a.concat(b), default: () => [] }),
            count: Annotation(),
        }),
    )
        .addNode("square", ({ x }) => ({ squares: [x * x] }))
        .addNode("done", (state) => ({ count: state.squares.length }))
        .addConditionalEdges(
            START,
            (state) => Array.from({ length: state.n }, (_, x) => new Send("square", { x })),
            ["square"],
        )
        .addEdge("square", "done");

/* As in graphs.py. */
const WORKLOADS = {
    echo: {
        make: echo,
        given: { messages: ["Hello"] },
        supersteps: 1,
        turns: 1,
        isRight: (out) => out.messages.length === 2,
    },
    loop: {
        make: loop,
        given: { count: 0 },
        supersteps: 5,
        turns: 1,
        isRight: (out) => out.count === 5,
    },
    fanout: {
        make: fanout,
        given: { n: 100 },
        supersteps: 2,
        turns: 1,
        isRight: (out) => out.count === 100,
    },
    chat: {
        make: echo,
        given: { messages: [TEXT] },
        supersteps: 1,
        turns: 100,
        isRight: (out) => out.messages.length === 200,
    },
};

async function openFile(file) {
    const { SqliteSaver } = await load("@langchain/langgraph-checkpoint-sqlite");
    const saver = SqliteSaver.fromConnString(file);
    await saver.getTuple({ configurable: { thread_id: "none" } }); // creates its tables
    return saver;
}

/* Frames of a write-ahead log that end a transaction; those before its last restart are not there. */
function countCommits(wal) {
    const log = readFileSync(wal);
    const frame = 24 + log.readUInt32BE(8);
    let count = 0;
    for (let at = 32; at + frame <= log.length; at += frame) {
        count += log.compare(log, 16, 24, at + 8, at + 16) === 0 && log.readUInt32BE(at + 4) !== 0;
    }
    return count;
}

/* On a file of its own, in one run: the log is not yet restarted. */
async function commitsPerSuperstep({ make, given, supersteps }, folder) {
    const saver = await openFile(`${folder}/commits.db`);
    const graph = make().compile({ checkpointer: saver });
    const before = countCommits(`${folder}/commits.db-wal`);
    await graph.invoke(given, { configurable: { thread_id: "a" } });
    return (countCommits(`${folder}/commits.db-wal`) - before) / supersteps;
}

async function openSaver(name, folder) {
    if (name === "memory") return [new MemorySaver(), "none"];
    const saver = await openFile(`${folder}/stock.db`);
    const journal = saver.db.pragma("journal_mode", { simple: true });
    return [saver, `${journal}, synchronous=${saver.db.pragma("synchronous", { simple: true })}`];
}

/* Runs until `end`, the last thread to its own end; how many supersteps there were. */
async function work(graph, { given, supersteps, turns, isRight }, end) {
    let done = 0;
    while (performance.now() < end) {
        const config = { configurable: { thread_id: randomUUID() } };
        let out;
        for (let turn = 0; turn < turns; turn++, done += supersteps)
            out = await graph.invoke(given, config);
        if (!isRight(out)) throw new Error(`wrong result: ${JSON.stringify(out).slice(0, 200)}`);
    }
    return done;
}

const [saverName, name] = process.argv.slice(2, 4);
const [length, atOnce] = [1000 * Number(process.argv[4]), Number(process.argv[5] ?? 1)];
const folder = mkdtempSync(path.join(process.env.BENCH_DIR ?? tmpdir(), "bench-"));
const [saver, durability] = await openSaver(saverName, folder);
const graph = WORKLOADS[name].make().compile({ checkpointer: saver });

async function allWork(milliseconds) {
    const end = performance.now() + milliseconds;
    const counts = await Promise.all(
        Array.from({ length: atOnce }, () => work(graph, WORKLOADS[name], end)),
    );
    return counts.reduce((a, b) => a + b);
}

await allWork(Math.max(1000, length / 2)); // compiled by then
const start = performance.now();
const cpuStart = process.cpuUsage();
const steps = await allWork(length);
const wall = performance.now() - start;
const used = process.cpuUsage(cpuStart);
const commits = saverName === "sqlite" ? await commitsPerSuperstep(WORKLOADS[name], folder) : 0;
rmSync(folder, { recursive: true });
console.log(
    JSON.stringify({
        workload: name,
        supersteps: steps,
        supersteps_per_s: (1000 * steps) / wall,
        cpu_us_per_superstep: (used.user + used.system) / steps,
        commits_per_superstep: commits,
        durability,
    }),
);
