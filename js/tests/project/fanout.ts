import { Annotation, END, Send, START, StateGraph } from "@langchain/langgraph";

const State = Annotation.Root({
    items: Annotation<string[]>,
    results: Annotation<string[]>({
        reducer: (left, right) => left.concat(right),
        default: () => [],
    }),
    summary: Annotation<string>,
});

export const graph = new StateGraph(State)
    .addNode("work", ({ item }: { item?: string } & typeof State.State) => ({
        results: [`${item}!`],
    }))
    .addNode("collect", ({ results }) => ({ summary: results.join(" ") }))
    .addConditionalEdges(START, ({ items }) => items.map((item) => new Send("work", { item })), [
        "work",
    ])
    .addEdge("work", "collect")
    .addEdge("collect", END)
    .compile();
