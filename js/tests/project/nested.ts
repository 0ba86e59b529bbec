import { Annotation, interrupt, START, StateGraph } from "@langchain/langgraph";

const State = Annotation.Root({
    path: Annotation<string[]>({ reducer: (left, right) => left.concat(right), default: () => [] }),
    ask: Annotation<boolean>,
});
const Inner = Annotation.Root({
    path: Annotation<string[]>,
    ask: Annotation<boolean>,
    answer: Annotation<string>,
});

const leaf = new StateGraph(Inner)
    .addNode("first", ({ path }) => ({ path: [...path, "leaf"] }))
    .addNode("second", ({ path, ask }) => ({
        path: [...path, ask ? String(interrupt("go deeper?")) : "quiet"],
    }))
    .addEdge(START, "first")
    .addEdge("first", "second")
    .compile();

const middle = new StateGraph(Inner)
    .addNode("leaf", async ({ ask }) => ({
        path: (await leaf.invoke({ path: ["middle"], ask })).path,
    }))
    .addNode("tail", ({ path }) => ({ path: [...path, "tail"] }))
    .addEdge(START, "leaf")
    .addEdge("leaf", "tail")
    .compile();

export const graph = new StateGraph(State)
    .addNode("before", () => ({ path: ["before"] }))
    .addNode("middle", middle)
    .addNode("after", () => ({ path: ["after"] }))
    .addEdge(START, "before")
    .addEdge("before", "middle")
    .addEdge("middle", "after")
    .compile();
