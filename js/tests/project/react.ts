import { tool } from "@langchain/core/tools";
import type { LangGraphRunnableConfig } from "@langchain/langgraph";
import { createReactAgent } from "@langchain/langgraph/prebuilt";
import { z } from "zod";
import { ScriptedModel } from "./model.js";

const add = tool(({ a, b }) => String(a + b), {
    name: "add",
    description: "Adds two numbers.",
    schema: z.object({ a: z.number(), b: z.number() }),
});

/** Waits until the run is cancelled. */
const wait = tool(
    (_input, { signal, writer }: LangGraphRunnableConfig) => {
        writer?.("waiting");
        return new Promise<string>((_resolve, reject) => {
            signal?.addEventListener("abort", () => reject(signal.reason as Error), { once: true });
        });
    },
    { name: "wait", description: "Waits.", schema: z.object({}) },
);

export const graph = createReactAgent({ llm: new ScriptedModel({}), tools: [add, wait] });
