/**
 * Real graphs: the same program gives the same answers, states and histories on every database as
 * on LangGraph's own MemorySaver.
 */
import {
    AIMessage,
    HumanMessage,
    RemoveMessage,
    ToolMessage,
    type BaseMessage,
} from "@langchain/core/messages";
import {
    Annotation,
    Command,
    DeltaChannel,
    END,
    entrypoint,
    interrupt,
    MemorySaver,
    messagesStateReducer,
    Overwrite,
    Send,
    START,
    StateGraph,
    task,
    type BaseCheckpointSaver,
    type StateSnapshot,
} from "@langchain/langgraph";
import { afterEach, describe, expect, it } from "vitest";
import { closeSavers, databases, saverOn } from "./lib/stores.js";

type Saver = BaseCheckpointSaver<any>;
type Program = (saver: Saver) => Promise<unknown>;

/** Ids, times and task ids are new in every run; their references stay the same. */
class Names {
    readonly #names = new Map<string, string>();

    replace(value: unknown): unknown {
        const text = JSON.stringify(value, (_key, member: unknown) =>
            member instanceof Map || member instanceof Set
                ? { [member.constructor.name]: [...member] }
                : member,
        );
        if (text === undefined) return undefined;
        return JSON.parse(
            text
                .replace(
                    /[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}|"[0-9a-f]{32}"/g,
                    (id) => this.#name(id),
                )
                .replace(/\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z/g, "TIME"),
        );
    }

    #name(id: string): string {
        const known = this.#names.get(id) ?? `id-${this.#names.size}`;
        this.#names.set(id, known);
        return id.startsWith('"') ? `"${known}"` : known;
    }
}

async function history(
    graph: { getStateHistory(config: object): AsyncIterable<StateSnapshot> },
    config: object,
) {
    const result = [];
    for await (const {
        values,
        next,
        config: at,
        metadata,
        parentConfig,
        tasks,
    } of graph.getStateHistory(config)) {
        result.push({
            values,
            next,
            at: at.configurable,
            metadata,
            parent: parentConfig?.configurable,
            tasks,
        });
    }
    return result;
}

const Chat = Annotation.Root({
    messages: Annotation<BaseMessage[]>({ reducer: messagesStateReducer, default: () => [] }),
    turns: Annotation<number>({ reducer: (a, b) => a + b, default: () => 0 }),
    extra: Annotation<unknown>,
});

function chat(saver: Saver) {
    return new StateGraph(Chat)
        .addNode("model", ({ messages, turns }) => {
            const last = messages.at(-1)!;
            if (last instanceof ToolMessage)
                return {
                    messages: [
                        new AIMessage({ id: `a${turns}`, content: `found ${last.content}` }),
                    ],
                    turns: 1,
                };
            const call = {
                name: "look",
                args: { q: last.content },
                id: `c${turns}`,
                type: "tool_call" as const,
            };
            return {
                messages: [new AIMessage({ id: `q${turns}`, content: "", tool_calls: [call] })],
                turns: 1,
            };
        })
        .addNode("tools", ({ messages, turns }) => {
            const [call] = (messages.at(-1) as AIMessage).tool_calls!;
            const found = new ToolMessage({
                id: `t${turns}`,
                content: "42",
                tool_call_id: call!.id!,
                status: "success",
            });
            return { messages: [found], extra: new Map([["at", new Set([turns])]]) };
        })
        .addEdge(START, "model")
        .addConditionalEdges("model", ({ messages }) =>
            (messages.at(-1) as AIMessage).tool_calls?.length ? "tools" : END,
        )
        .addEdge("tools", "model")
        .compile({ checkpointer: saver });
}

const programs: Record<string, Program> = {
    async "chat loop with tools"(saver) {
        const graph = chat(saver);
        const config = { configurable: { thread_id: "t" } };
        const answers = [];
        for (const [i, text] of ["one", "two ü", "three 😀"].entries()) {
            answers.push(
                await graph.invoke(
                    { messages: [new HumanMessage({ id: `h${i}`, content: text })] },
                    config,
                ),
            );
        }
        answers.push(
            await graph.invoke(
                {
                    messages: [
                        new RemoveMessage({ id: "h0" }),
                        new HumanMessage({ id: "h9", content: "x" }),
                    ],
                },
                config,
            ),
        );
        return { answers, history: await history(graph, config) };
    },

    async "parallel Sends"(saver) {
        const State = Annotation.Root({
            items: Annotation<number[]>,
            results: Annotation<unknown[]>({ reducer: (a, b) => [...a, ...b], default: () => [] }),
        });
        const graph = new StateGraph(State)
            .addNode("plan", () => ({}))
            .addNode("work", (state: unknown) => {
                const { n, message } = state as { n: number; message: BaseMessage };
                return {
                    results: [{ n: n * n, kind: message.constructor.name, text: message.content }],
                };
            })
            .addNode("join", ({ results }) => ({ results: [`sum ${results.length}`] }))
            .addEdge(START, "plan")
            .addConditionalEdges("plan", ({ items }) =>
                items.map((n) => new Send("work", { n, message: new HumanMessage(`item ${n}`) })),
            )
            .addEdge("work", "join")
            .addEdge("join", END)
            .compile({ checkpointer: saver, interruptBefore: ["work"] });
        const config = { configurable: { thread_id: "t" } };
        const first = await graph.invoke({ items: [1, 2, 3, 4] }, config);
        const waiting = await graph.getState(config);
        const second = await graph.invoke(null, config);
        return {
            first,
            waiting: [waiting.next, waiting.tasks],
            second,
            history: await history(graph, config),
        };
    },

    async "nested subgraphs with an interrupt inside"(saver) {
        const State = Annotation.Root({
            log: Annotation<string[]>({ reducer: (a, b) => [...a, ...b], default: () => [] }),
        });
        const inner = new StateGraph(State)
            .addNode("ask", () => ({ log: [`inner ${interrupt({ question: "sure?" })}`] }))
            .addNode("after", () => ({ log: ["after"] }))
            .addEdge(START, "ask")
            .addEdge("ask", "after")
            .compile();
        const middle = new StateGraph(State)
            .addNode("before", () => ({ log: ["middle"] }))
            .addNode("inner", inner)
            .addEdge(START, "before")
            .addEdge("before", "inner")
            .compile();
        const graph = new StateGraph(State)
            .addNode("middle", middle)
            .addNode("end", () => ({ log: ["end"] }))
            .addEdge(START, "middle")
            .addEdge("middle", "end")
            .compile({ checkpointer: saver });
        const config = { configurable: { thread_id: "t" } };
        const first = await graph.invoke({ log: ["start"] }, config);
        const waiting = await graph.getState(config, { subgraphs: true });
        const second = await graph.invoke(new Command({ resume: "yes" }), config);
        return {
            first,
            waiting: [waiting.next, waiting.tasks],
            second,
            history: await history(graph, config),
        };
    },

    async "two questions in one node"(saver) {
        const State = Annotation.Root({
            name: Annotation<string>,
            age: Annotation<number>,
            runs: Annotation<number>,
        });
        let runs = 0;
        const graph = new StateGraph(State)
            .addNode("ask", () => {
                runs++;
                const name = interrupt("name?") as string;
                const age = interrupt({ question: `age of ${name}?` }) as number;
                return { name, age, runs };
            })
            .addEdge(START, "ask")
            .compile({ checkpointer: saver });
        const config = { configurable: { thread_id: "t" } };
        const steps = [
            await graph.invoke({}, config),
            await graph.invoke(new Command({ resume: "Ann" }), config),
            (await graph.getState(config)).tasks,
            await graph.invoke(new Command({ resume: 42 }), config),
        ];
        return { steps, history: await history(graph, config) };
    },

    async "one parallel task done, the other interrupted"(saver) {
        const State = Annotation.Root({
            log: Annotation<string[]>({ reducer: (a, b) => [...a, ...b], default: () => [] }),
        });
        const ran: string[] = [];
        const graph = new StateGraph(State)
            .addNode("fast", () => {
                ran.push("fast");
                return { log: ["fast"] };
            })
            .addNode("slow", () => {
                ran.push("slow");
                return { log: [`slow ${interrupt("go?")}`] };
            })
            .addNode("join", () => ({ log: ["join"] }))
            .addEdge(START, "fast")
            .addEdge(START, "slow")
            .addEdge(["fast", "slow"], "join")
            .compile({ checkpointer: saver });
        const config = { configurable: { thread_id: "t" } };
        const first = await graph.invoke({ log: [] }, config);
        const second = await graph.invoke(new Command({ resume: "on" }), config);
        return { first, second, ran, history: await history(graph, config) };
    },

    async "time travel and forks"(saver) {
        const State = Annotation.Root({
            log: Annotation<string[]>({ reducer: (a, b) => [...a, ...b], default: () => [] }),
            word: Annotation<string>,
        });
        const graph = new StateGraph(State)
            .addNode("a", ({ word }) => ({ log: [`a ${word}`], word: `${word}a` }))
            .addNode("b", ({ word }) => ({ log: [`b ${word}`], word: `${word}b` }))
            .addEdge(START, "a")
            .addEdge("a", "b")
            .addEdge("b", END)
            .compile({ checkpointer: saver });
        const config = { configurable: { thread_id: "t" } };
        const main = await graph.invoke({ word: "x" }, config);
        const states = [];
        for await (const state of graph.getStateHistory(config)) states.push(state);
        const beforeB = states.find(({ next }) => next[0] === "b")!;
        const replayed = await graph.invoke(null, beforeB.config);
        const forked = await graph.updateState(beforeB.config, { word: "fork" });
        const fork = await graph.invoke(null, forked);
        const reloaded = [];
        for (const state of states) reloaded.push((await graph.getState(state.config)).values);
        return { main, replayed, fork, reloaded, history: await history(graph, config) };
    },

    async "functional API"(saver) {
        let drafts = 0;
        const draft = task("draft", async (topic: string) => {
            drafts++;
            return { text: `about ${topic}`, size: 3 };
        });
        const flow = entrypoint({ name: "flow", checkpointer: saver }, async (topic: string) => {
            const [one, two] = await Promise.all([draft(topic), draft(`${topic}!`)]);
            const verdict = interrupt({ draft: one!.text }) as string;
            const result = { texts: [one!.text, two!.text], size: String(one!.size), verdict };
            return entrypoint.final({ value: result, save: `${topic} saved` });
        });
        const config = { configurable: { thread_id: "t" } };
        const first = await flow.invoke("cats", config);
        const second = await flow.invoke(new Command({ resume: "good" }), config);
        const state = await flow.getState(config);
        return { first, second, drafts, values: state.values, next: state.next };
    },

    async "a Command as answer of a node, and Overwrite"(saver) {
        const State = Annotation.Root({
            log: Annotation<string[]>({ reducer: (a, b) => [...a, ...b], default: () => [] }),
        });
        const graph = new StateGraph(State)
            .addNode("route", () => new Command({ update: { log: ["route"] }, goto: "wipe" }), {
                ends: ["wipe"],
            })
            .addNode("wipe", () => ({ log: new Overwrite(["only"]) as never }))
            .addEdge(START, "route")
            .compile({ checkpointer: saver });
        const config = { configurable: { thread_id: "t" } };
        const answer = await graph.invoke({ log: ["start"] }, config);
        return { answer, history: await history(graph, config) };
    },

    async "a failing node, tried again"(saver) {
        const State = Annotation.Root({
            log: Annotation<string[]>({ reducer: (a, b) => [...a, ...b], default: () => [] }),
        });
        let attempts = 0;
        const ran: string[] = [];
        const graph = new StateGraph(State)
            .addNode("good", () => {
                ran.push("good");
                return { log: ["good"] };
            })
            .addNode("bad", () => {
                ran.push("bad");
                if (++attempts === 1) throw new RangeError("not yet");
                return { log: ["bad"] };
            })
            .addEdge(START, "good")
            .addEdge(START, "bad")
            .compile({ checkpointer: saver });
        const config = { configurable: { thread_id: "t" } };
        const failure = await graph
            .invoke({ log: [] }, config)
            .catch((error: Error) => [error.name, error.message]);
        // A race in LangGraph decides if the other task's writes are saved before the failure.
        const { next } = await graph.getState(config);
        return { failure, next, answer: (await graph.invoke(null, config)).log.sort() };
    },

    async "delta channels"(saver) {
        const State = Annotation.Root({
            log: () =>
                new DeltaChannel<string[], string[]>(
                    (state: string[], writes: string[][]) => [...state, ...writes.flat()],
                    { initialValueFactory: () => [], snapshotFrequency: 3 } as never,
                ) as never,
        } as never) as any;
        const graph = new StateGraph(State)
            .addNode("a", () => ({ log: ["a"] }))
            .addNode("b", () => ({ log: ["b"] }))
            .addEdge(START, "a")
            .addEdge("a", "b")
            .compile({ checkpointer: saver }) as any;
        const config = { configurable: { thread_id: "t" } };
        const answers = [];
        for (const word of ["x", "y", "z"])
            answers.push(await graph.invoke({ log: [word] }, config));
        expect(answers.at(-1).log).toEqual(["x", "a", "b", "y", "a", "b", "z", "a", "b"]);
        return {
            answers,
            history: (await history(graph, config)).map(({ values, next }) => ({ values, next })),
        };
    },
};

for (const durability of ["sync", "async", "exit"] as const) {
    programs[`durability ${durability}`] = async (saver) => {
        const graph = chat(saver);
        const config = { configurable: { thread_id: "t" }, durability };
        const answers = [];
        for (const i of [0, 1]) {
            answers.push(
                await graph.invoke(
                    { messages: [new HumanMessage({ id: `h${i}`, content: `${i}` })] },
                    config,
                ),
            );
        }
        return { answers, history: await history(graph, config) };
    };
}

describe.each(databases)("%s", (_database, freshUrl) => {
    afterEach(closeSavers);

    it.each(Object.entries(programs))("%s", async (_name, program) => {
        const expected = new Names().replace(await program(new MemorySaver()));
        const actual = new Names().replace(await program(saverOn(freshUrl())));
        expect(expected).toBeDefined();
        expect(actual).toEqual(expected);
    });
});

describe.each(databases.filter(([name]) => name !== "memory"))("%s", (_database, freshUrl) => {
    afterEach(closeSavers);

    it("a thread is continued by another process' saver", async () => {
        const url = freshUrl();
        const config = { configurable: { thread_id: "t" } };
        const first = saverOn(url);
        await chat(first).invoke(
            { messages: [new HumanMessage({ id: "h0", content: "one" })] },
            config,
        );
        await first.close();
        const graph = chat(saverOn(url));
        const answer = await graph.invoke(
            { messages: [new HumanMessage({ id: "h1", content: "two" })] },
            config,
        );
        expect(answer.messages.map(({ content }) => content)).toEqual([
            "one",
            "",
            "42",
            "found 42",
            "two",
            "",
            "42",
            "found 42",
        ]);
        expect(answer.messages[2]).toBeInstanceOf(ToolMessage);
        expect(answer.extra).toEqual(new Map([["at", new Set([3])]]));
    });
});
