/**
 * Two branches of one checkpoint. Stock PostgreSQL keys values by an integer version that both
 * branches reach, so that one shows the other's data.
 */
import { MemorySaver, type BaseCheckpointSaver } from "@langchain/langgraph-checkpoint";
import { PostgresSaver } from "@langchain/langgraph-checkpoint-postgres";
import { Annotation, END, START, StateGraph } from "@langchain/langgraph";
import { afterEach, expect, it } from "vitest";
import { closeSavers, databases, postgresUrl, saverOn } from "./lib/stores.js";

interface Outcome {
    readonly live: string;
    readonly reloadedMain: string;
    readonly reloadedFork: string;
}

/** A run, then a second one from its middle with another decision; both are loaded again. */
async function fork(saver: BaseCheckpointSaver<any>): Promise<Outcome> {
    const State = Annotation.Root({ word: Annotation<string> });
    let branch = "main";
    const graph = new StateGraph(State)
        .addNode("a", () => ({ word: "a" }))
        .addNode("b", () => ({ word: `b-${branch}` }))
        .addEdge(START, "a")
        .addEdge("a", "b")
        .addEdge("b", END)
        .compile({ checkpointer: saver });
    const config = { configurable: { thread_id: "forked" } };
    await graph.invoke({ word: "" }, config);
    const { config: mainEnd } = await graph.getState(config);
    let beforeB;
    for await (const state of graph.getStateHistory(config))
        if (state.next[0] === "b") beforeB = state.config;
    branch = "fork";
    const live = await graph.invoke(null, beforeB!);
    return {
        live: live.word,
        reloadedMain: (await graph.getState(mainEnd)).values.word,
        reloadedFork: (await graph.getState(config)).values.word,
    };
}

const right = { live: "b-fork", reloadedMain: "b-main", reloadedFork: "b-fork" };

afterEach(closeSavers);

it("MemorySaver is right", async () => {
    expect(await fork(new MemorySaver())).toEqual(right);
});

it.each(databases)("HeddleSaver on %s is right", async (_name, freshUrl) => {
    expect(await fork(saverOn(freshUrl()))).toEqual(right);
});

// When this fails, the stock saver has been fixed: then remove this test.
it("the stock PostgreSQL saver mixes the branches", async () => {
    const saver = PostgresSaver.fromConnString(postgresUrl(), {
        schema: `stock_${Date.now().toString(36)}`,
    });
    try {
        await saver.setup();
        expect(await fork(saver)).toEqual({
            live: "b-fork",
            reloadedMain: "b-main",
            reloadedFork: "b-main",
        });
    } finally {
        await saver.end();
    }
});
