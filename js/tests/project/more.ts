/**
 * Features the other graphs do not cover: a graph function, a context, the store, values of many
 * kinds.
 */
import {
    Command,
    START,
    StateGraph,
    type LangGraphRunnableConfig,
    type Runtime,
} from "@langchain/langgraph";
import { z } from "zod";

const State = z.object({
    word: z.string(),
    seen: z.record(z.string(), z.unknown()).optional(),
});
const Context = z.object({ user: z.string().default("nobody") });

export async function makeGraph(config: LangGraphRunnableConfig) {
    const suffix = String(config.configurable?.suffix ?? "");
    return new StateGraph(State, Context)
        .addNode(
            "remember",
            async ({ word }, runtime: Runtime<z.infer<typeof Context>>) => {
                const namespace = ["words", runtime.context?.user ?? "nobody"];
                const before = await runtime.store?.get(namespace, "last");
                await runtime.store?.put(namespace, "last", { word });
                const found = await runtime.store?.search(["words"]);
                const seen = {
                    before: before?.value.word ?? null,
                    count: found?.length,
                    word: word + suffix,
                    at: new Date(0),
                };
                return new Command({ update: { seen }, goto: "done" });
            },
            { ends: ["done"] },
        )
        .addNode("done", () => ({}))
        .addEdge(START, "remember");
}
