import { MessagesAnnotation, START, StateGraph } from "@langchain/langgraph";
import { ScriptedModel } from "./model.js";

const model = new ScriptedModel({});

export const graph = new StateGraph(MessagesAnnotation)
    .addNode("chat", async ({ messages }) => {
        if (messages.at(-1)?.text === "fail") throw new RangeError("the graph was told to fail");
        return { messages: [await model.invoke(messages)] };
    })
    .addEdge(START, "chat")
    .compile();
