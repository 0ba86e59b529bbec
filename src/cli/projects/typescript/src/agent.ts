// An agent that answers by itself until .env names a model.

import { AIMessage } from "@langchain/core/messages";
import { END, MessagesAnnotation, START, StateGraph } from "@langchain/langgraph";

async function chat(
    state: typeof MessagesAnnotation.State,
): Promise<typeof MessagesAnnotation.Update> {
    if (process.env.MODEL) {
        // npm install langchain @langchain/openai
        const { initChatModel } = await import("langchain/chat_models/universal");
        const model = await initChatModel(process.env.MODEL);
        return { messages: [await model.invoke(state.messages)] };
    }
    const said = state.messages.at(-1)?.text ?? "";
    return {
        messages: [
            new AIMessage(
                `You said: ${said}. Change src/agent.ts, and I shall say something else.`,
            ),
        ],
    };
}

// Heddle keeps the threads: the graph needs no checkpointer of its own.
export const graph = new StateGraph(MessagesAnnotation)
    .addNode("chat", chat)
    .addEdge(START, "chat")
    .addEdge("chat", END)
    .compile();
