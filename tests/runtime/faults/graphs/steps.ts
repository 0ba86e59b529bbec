// Two steps, the second of which waits for a file: as steps.py, for the other kind of worker.
import { existsSync, readdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { Annotation, END, START, StateGraph } from "@langchain/langgraph";
import type { RunnableConfig } from "@langchain/core/runnables";

const State = Annotation.Root({
    said: Annotation<string[]>({ reducer: (old, more) => old.concat(more), default: () => [] }),
});

function node(name: string) {
    return async (_: typeof State.State, config: RunnableConfig) => {
        const folder: string = config.configurable!.folder;
        const number =
            readdirSync(folder).filter((file) => new RegExp(`^${name}\\.[0-9]+$`).test(file))
                .length + 1;
        writeFileSync(join(folder, `${name}.${number}`), String(process.pid));
        while (existsSync(join(folder, `${name}.waits`)) && !existsSync(join(folder, `${name}.go`)))
            await sleep(10);
        return { said: [name] };
    };
}

export const graph = new StateGraph(State)
    .addNode("first", node("first"))
    .addNode("end", node("end"))
    .addEdge(START, "first")
    .addEdge("first", "end")
    .addEdge("end", END)
    .compile();
