/** Graphs that repeat their input and call each other. */
import { AIMessage } from "@langchain/core/messages";
import { MessagesAnnotation, START, StateGraph } from "@langchain/langgraph";
import { assistant } from "heddle/runtime";

type Output = { messages: { content: string }[] };

export const told = new StateGraph(MessagesAnnotation)
    .addNode("reply", async ({ messages }) => ({
        messages: [new AIMessage(`script: ${messages.map((each) => each.text).join(" / ")}`)],
    }))
    .addEdge(START, "reply")
    .compile();

/** `native one; python two`: calls these in order, with these texts. */
export const caller = new StateGraph(MessagesAnnotation)
    .addNode("call", async ({ messages }) => {
        const said: string[] = [];
        for (const each of (messages.at(-1)?.text ?? "").split("; ")) {
            const [name = "", ...words] = each.split(" ");
            const output = (await assistant(name).invoke({
                messages: [{ role: "user", content: words.join(" ") }],
            })) as Output;
            said.push(output.messages.at(-1)?.content ?? "");
        }
        return { messages: [new AIMessage(said.join(" | "))] };
    })
    .addEdge(START, "call")
    .compile();
