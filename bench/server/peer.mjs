// @langchain/langgraph-api with the same echo:  node peer.mjs PORT FOLDER
//
// It loads at its start what it finds in FOLDER, and writes there from time to time.
import { AIMessage } from "@langchain/core/messages";
import { END, MessagesAnnotation, START, StateGraph } from "@langchain/langgraph";
import { startServer } from "@langchain/langgraph-api/server";
import { fileURLToPath } from "node:url";

export const echo = new StateGraph(MessagesAnnotation)
    .addNode("reply", ({ messages }) => ({
        messages: [new AIMessage(`You said: ${messages.at(-1).content}`)],
    }))
    .addEdge(START, "reply")
    .addEdge("reply", END)
    .compile();

const [port, folder] = process.argv.slice(2);
if (port)
    // Not awaited: it imports this very file for the graph.
    startServer({
        port: Number(port),
        host: "127.0.0.1",
        nWorkers: 10, // its own default
        cwd: folder,
        graphs: { echo: `${fileURLToPath(import.meta.url)}:echo` },
    });
