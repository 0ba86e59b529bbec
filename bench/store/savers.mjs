/*
 * One saver, one workload, one line of JSON: the JavaScript side of bench/store.
 *
 *     node savers.mjs NAME MESSAGES
 *
 * The same workload as savers.py. Packages are looked up from BENCH_MODULES.
 */
import { createRequire } from "node:module";
import { randomUUID } from "node:crypto";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { pathToFileURL } from "node:url";

const modules = createRequire(path.join(process.env.BENCH_MODULES, "package.json"));
/* The ES build, so that every package sees the same classes. */
const load = (name) => import(pathToFileURL(modules.resolve(name).replace(/\.cjs$/, ".js")).href);

const { AIMessage, HumanMessage } = await load("@langchain/core/messages");
const { MemorySaver, uuid6, emptyCheckpoint } = await load("@langchain/langgraph-checkpoint");

let seed = 7;
const random = () => (seed = (seed * 1103515245 + 12345) % 2147483648) / 2147483648;
const words = (
    "the agent said that it would look for a better answer when tools return what they found " +
    "and the user asked again about weather trains money plans code tests memory threads"
).split(" ");

function text(size) {
    let out = "";
    while (out.length < size)
        out +=
            (random() < 0.8
                ? words[Math.floor(random() * words.length)]
                : Math.floor(random() * 1e6)) + " ";
    return out.slice(0, size);
}

async function openSaver(name, folder) {
    const postgres = process.env.HEDDLE_TEST_PG_URL ?? "";
    const joint = postgres.includes("?") ? "&" : "?";
    const schema = `bench_${randomUUID().slice(0, 8)}`;
    switch (name) {
        case "stock-memory":
            return [new MemorySaver(), "none"];
        case "stock-sqlite": {
            const { SqliteSaver } = await load("@langchain/langgraph-checkpoint-sqlite");
            const saver = SqliteSaver.fromConnString(`${folder}/stock.db`);
            await saver.getTuple({ configurable: { thread_id: "none" } }); // creates its tables
            const journal = saver.db.pragma("journal_mode", { simple: true });
            return [
                saver,
                `${journal}, synchronous=${saver.db.pragma("synchronous", { simple: true })}`,
            ];
        }
        case "stock-postgres": {
            const { PostgresSaver } = await load("@langchain/langgraph-checkpoint-postgres");
            const saver = PostgresSaver.fromConnString(postgres, { schema });
            await saver.setup();
            return [saver, "synchronous_commit=on", () => saver.end()];
        }
    }
    const { HeddleSaver } = await load("heddle");
    const [url, durability] = {
        "heddle-memory": ["memory:", "none"],
        // the stock saver's own level, so that both promise the same
        "heddle-sqlite": [`sqlite:${folder}/heddle.db?durability=relaxed`, "wal, synchronous=1"],
        "heddle-postgres": [`${postgres}${joint}schema=${schema}`, "synchronous_commit=on"],
    }[name];
    const saver = await HeddleSaver.fromConnString(url);
    return [saver, durability, () => saver.close()];
}

async function run(saver, count) {
    const thread = "00000000-0000-0000-0000-000000000007";
    let config = { configurable: { thread_id: thread, checkpoint_ns: "" } };
    let messages = [];
    let versions = {};
    let version;
    let spent = 0;
    let cpu = 0;
    const ids = [];

    for (let step = 0; step < count; step++) {
        const Kind = step % 2 ? AIMessage : HumanMessage;
        const message = new Kind({ content: text(500), id: randomUUID() });
        messages = [...messages, message];
        version = saver.getNextVersion(version);
        const changed = { messages: version, count: version };
        if (step === 0) Object.assign(changed, { topic: version, limits: version });
        versions = { ...versions, ...changed };
        const checkpoint = {
            ...emptyCheckpoint(),
            id: uuid6(step),
            channel_values: { messages, topic: "trains", count: step, limits: { tools: 3 } },
            channel_versions: versions,
            versions_seen: { agent: { messages: version } },
        };
        const metadata = { source: "loop", step, parents: {} };
        const start = performance.now();
        const cpuStart = process.cpuUsage();
        config = await saver.put(config, checkpoint, metadata, changed);
        await saver.putWrites(config, [["messages", [message]]], `task-${2 * step}`);
        await saver.putWrites(config, [["count", step]], `task-${2 * step + 1}`);
        spent += performance.now() - start;
        const used = process.cpuUsage(cpuStart);
        cpu += (used.user + used.system) / 1000;
        ids.push(checkpoint.id);
    }

    const timed = async (call, rounds) => {
        let best = Infinity;
        for (let i = 0; i < rounds; i++) {
            const start = performance.now();
            await call();
            best = Math.min(best, performance.now() - start);
        }
        return best;
    };
    const latest = { configurable: { thread_id: thread, checkpoint_ns: "" } };
    const byId = {
        configurable: {
            ...latest.configurable,
            checkpoint_id: ids[Math.floor((ids.length * 3) / 4)],
        },
    };
    const found = await saver.getTuple(latest);
    if (found.checkpoint.channel_values.messages.length !== count) throw new Error("lost messages");
    return {
        steps_per_s: (1000 * count) / spent,
        cpu_ms_per_step: cpu / count,
        get_latest_ms: await timed(() => saver.getTuple(latest), 15),
        get_by_id_ms: await timed(() => saver.getTuple(byId), 15),
        list_10_ms: await timed(async () => {
            for await (const _ of saver.list(latest, { limit: 10 }));
        }, 7),
    };
}

const [name, messages] = [process.argv[2], Number(process.argv[3])];
const folder = mkdtempSync(path.join(process.env.BENCH_DIR ?? tmpdir(), "bench-"));
const [saver, durability, close] = await openSaver(name, folder);
const figures = await run(saver, messages);
await close?.();
rmSync(folder, { recursive: true });
console.log(JSON.stringify({ saver: name, messages, durability, ...figures }));
