/**
 * Runs the same calls on a server, through the SDK, and with the same graphs in this process,
 * with LangGraph's own saver; prints both results.
 *
 *   node --import tsx drive.ts URL      in the folder of the project
 **/
import { Command, MemorySaver } from "@langchain/langgraph";
import { Client } from "@langchain/langgraph-sdk";
import { readFileSync } from "node:fs";
// Other tests check the rendering of values.
import { render } from "./node_modules/heddle/dist/runtime/render.js";

type Fields = Record<string, any>;
type Turn = { input?: unknown; command?: Fields; interruptBefore?: string[] };

interface Side {
    begin(graph: string): Promise<string>;
    run(thread: string, graph: string, turn: Turn): Promise<unknown>;
    state(thread: string, graph: string): Promise<unknown>;
    history(thread: string, graph: string): Promise<unknown>;
    update(thread: string, graph: string, values: Fields, asNode: string): Promise<void>;
    /** Stops a run after its first chunk. */
    cancel(thread: string, graph: string, input: unknown): Promise<unknown>;
}

const MODES = ["values", "updates", "custom"] as const;
const shown = (value: unknown) => JSON.parse(render(value));

class OnServer implements Side {
    readonly #client: Client;

    constructor(url: string) {
        this.#client = new Client({ apiUrl: url });
    }

    async begin() {
        return (await this.#client.threads.create()).thread_id;
    }

    async run(thread: string, graph: string, turn: Turn) {
        const events: unknown[] = [];
        const stream = this.#client.runs.stream(thread, graph, {
            ...(turn.command ? { command: turn.command } : { input: turn.input as Fields }),
            ...(turn.interruptBefore ? { interruptBefore: turn.interruptBefore } : {}),
            streamMode: [...MODES],
        });
        for await (const { event, data } of stream) {
            if ((MODES as readonly string[]).includes(event)) events.push([event, data]);
            else if (event === "error")
                events.push([
                    event,
                    { error: (data as Fields).error, message: (data as Fields).message },
                ]);
        }
        return events;
    }

    async state(thread: string) {
        const { values, next, tasks, metadata } =
            await this.#client.threads.getState<Fields>(thread);
        return {
            values,
            next,
            step: metadata?.step,
            source: metadata?.source,
            asked: tasks.map(questions),
        };
    }

    async history(thread: string) {
        const states = await this.#client.threads.getHistory<Fields>(thread, { limit: 100 });
        return states.map(({ values, next, metadata }) => ({
            values,
            next,
            step: metadata?.step,
            source: metadata?.source,
        }));
    }

    async update(thread: string, _graph: string, values: Fields, asNode: string) {
        await this.#client.threads.updateState(thread, { values, asNode });
    }

    async cancel(thread: string, graph: string, input: unknown) {
        let run_id = "";
        const events: unknown[] = [];
        for await (const { event, data } of this.#client.runs.stream(thread, graph, {
            input: input as Fields,
            streamMode: ["custom"],
        })) {
            if (event === "metadata") run_id = (data as Fields).run_id;
            if (event !== "custom") continue;
            events.push(data);
            await this.#client.runs.cancel(thread, run_id, true);
        }
        await this.#client.runs.join(thread, run_id);
        return events;
    }
}

class InProcess implements Side {
    readonly #graphs = new Map<string, any>();
    #threads = 0;

    async #graph(id: string): Promise<any> {
        if (!this.#graphs.has(id)) {
            const spec = JSON.parse(readFileSync("langgraph.json", "utf8")).graphs[id];
            const [file, name] = (spec.path ?? spec).split(":");
            const graph = ((await import(`${process.cwd()}/${file}`)) as Fields)[name];
            graph.checkpointer = new MemorySaver();
            this.#graphs.set(id, graph);
        }
        return this.#graphs.get(id);
    }

    async begin() {
        return `thread-${++this.#threads}`;
    }

    async run(thread: string, graph: string, turn: Turn) {
        const events: unknown[] = [];
        try {
            const options = {
                configurable: { thread_id: thread },
                streamMode: [...MODES],
                interruptBefore: turn.interruptBefore,
            };
            const input = turn.command ? new Command(turn.command) : turn.input;
            for await (const [mode, data] of await (
                await this.#graph(graph)
            ).stream(input, options))
                events.push([mode, shown(data)]);
        } catch (error) {
            events.push([
                "error",
                { error: (error as Error).name, message: (error as Error).message },
            ]);
        }
        return events;
    }

    async state(thread: string, graph: string) {
        const { values, next, tasks, metadata } = await (
            await this.#graph(graph)
        ).getState({ configurable: { thread_id: thread } });
        return shown({
            values,
            next,
            step: metadata.step,
            source: metadata.source,
            asked: tasks.map(questions),
        });
    }

    async history(thread: string, graph: string) {
        const states = [];
        for await (const { values, next, metadata } of (await this.#graph(graph)).getStateHistory({
            configurable: { thread_id: thread },
        })) {
            states.push({ values, next, step: metadata.step, source: metadata.source });
        }
        return shown(states);
    }

    async update(thread: string, graph: string, values: Fields, asNode: string) {
        await (
            await this.#graph(graph)
        ).updateState({ configurable: { thread_id: thread } }, values, asNode);
    }

    async cancel(thread: string, graph: string, input: unknown) {
        const abort = new AbortController();
        const options = {
            configurable: { thread_id: thread },
            streamMode: "custom",
            signal: abort.signal,
        };
        const events: unknown[] = [];
        try {
            for await (const data of await (await this.#graph(graph)).stream(input, options)) {
                events.push(shown(data));
                abort.abort();
            }
        } catch {
            // expected
        }
        return events;
    }
}

function questions(task: Fields): unknown {
    return [task.name, task.interrupts.map(({ value }: Fields) => value)];
}

const say = (content: string) => ({
    input: { messages: [{ type: "human", content, id: content }] },
});

/** Several turns in a thread; after each, the stream and the state, and at the end the history. */
async function turns(side: Side, graph: string, all: readonly Turn[]): Promise<unknown> {
    const thread = await side.begin(graph);
    const seen: unknown[] = [];
    for (const turn of all)
        seen.push(await side.run(thread, graph, turn), await side.state(thread, graph));
    return [...seen, await side.history(thread, graph)];
}

const scenarios: Record<string, (side: Side) => Promise<unknown>> = {
    chat: (side) => turns(side, "chat", [say("one"), say("two"), say("three")]),
    react: (side) => turns(side, "react", [say("add 1 2"), say("add 30 40"), say("thanks")]),
    fanout: (side) =>
        turns(side, "fanout", [
            { input: { items: ["a", "b", "c", "d", "e"] } },
            { input: { items: ["f"] } },
        ]),
    nested: (side) =>
        turns(side, "nested", [
            { input: { ask: false } },
            { input: { ask: true } },
            { command: { resume: "yes" } },
        ]),
    questions: (side) =>
        turns(side, "questions", [
            { input: {} },
            { command: { resume: "Ann" } },
            { command: { resume: "Oslo" } },
        ]),
    breakpoint: (side) =>
        turns(side, "nested", [
            { input: { ask: false }, interruptBefore: ["middle"] },
            { input: null },
        ]),
    entry: (side) =>
        turns(side, "entry", [
            { input: { n: 1 } },
            { input: { n: 2, ask: true } },
            { command: { resume: 10 } },
            { input: { n: 3 } },
        ]),
    failure: (side) => turns(side, "chat", [say("one"), say("fail"), say("two")]),

    async slow(side) {
        const thread = await side.begin("slow");
        const cancelled = await side.cancel(thread, "slow", {});
        const state = await side.state(thread, "slow");
        const after = await side.run(thread, "slow", { input: { until: 2 } });
        return [cancelled, state, after, await side.state(thread, "slow")];
    },

    async update(side) {
        const thread = await side.begin("questions");
        await side.run(thread, "questions", { input: {} });
        await side.update(thread, "questions", { name: "Ann", city: "Oslo" }, "ask");
        const state = await side.state(thread, "questions");
        const events = await side.run(thread, "questions", { input: null });
        return [state, events, await side.history(thread, "questions")];
    },
};

const sides = { server: new OnServer(process.argv[2]!), process: new InProcess() };
const results: Fields = {};
for (const [name, play] of Object.entries(scenarios)) {
    results[name] = {};
    for (const [where, side] of Object.entries(sides)) {
        try {
            results[name][where] = await play(side);
        } catch (error) {
            results[name][where] = { failed: String((error as Error).stack) };
        }
    }
}
console.log(JSON.stringify(results));
