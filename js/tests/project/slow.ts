import { Annotation, START, StateGraph, type LangGraphRunnableConfig } from "@langchain/langgraph";

const State = Annotation.Root({ ticks: Annotation<number>, until: Annotation<number> });

/** Waits until it is stopped, unless `until` limits the ticks. */
async function tick({ ticks = 0, until }: typeof State.State, config: LangGraphRunnableConfig) {
    config.writer?.({ tick: ticks });
    if (until === undefined || ticks < until) {
        await new Promise<void>((resolve, reject) => {
            if (until !== undefined) return void setTimeout(resolve, 1);
            const stop = () => reject(config.signal?.reason);
            if (config.signal?.aborted) stop();
            else config.signal?.addEventListener("abort", stop, { once: true });
        });
    }
    return { ticks: ticks + 1 };
}

export const graph = new StateGraph(State)
    .addNode("first", () => ({ ticks: 0 }))
    .addNode("tick", tick)
    .addEdge(START, "first")
    .addEdge("first", "tick")
    .addConditionalEdges("tick", ({ ticks, until }) => (ticks < (until ?? 0) ? "tick" : "__end__"))
    .compile();
