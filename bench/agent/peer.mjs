// @langchain/langgraph-api with an agent of LangChain's:  node peer.mjs PORT FOLDER
//
// The model is an OpenAI-compatible one at OPENAI_BASE_URL. The server loads at its start what it finds in
// FOLDER, and writes there from time to time.
import { startServer } from "@langchain/langgraph-api/server";
import { ChatOpenAI } from "@langchain/openai";
import { createAgent } from "langchain";
import { fileURLToPath } from "node:url";

export const agent = createAgent({
    model: new ChatOpenAI({
        model: "gpt-4o",
        temperature: 0.7,
        maxTokens: 4000,
        useResponsesApi: false,
        configuration: { baseURL: process.env.OPENAI_BASE_URL },
    }),
    tools: [],
    systemPrompt: "You are a helpful assistant.",
}).graph;

const [port, folder] = process.argv.slice(2);
if (port)
    // Not awaited: it imports this very file for the graph.
    startServer({
        port: Number(port),
        host: "127.0.0.1",
        nWorkers: 10, // its own default
        cwd: folder,
        graphs: { agent: `${fileURLToPath(import.meta.url)}:agent` },
    });
