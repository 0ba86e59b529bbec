import { Annotation, START, StateGraph } from "@langchain/langgraph";
import { assistant } from "heddle/runtime";

const State = Annotation.Root({ question: Annotation<string>, answer: Annotation<unknown> });

export const graph = new StateGraph(State)
    .addNode("ask", async ({ question }) => ({
        answer: await assistant("other").invoke({ question }),
    }))
    .addEdge(START, "ask")
    .compile();
