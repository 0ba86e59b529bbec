// @langchain/langgraph-api on a loopback port:  node serve.mjs PORT FOLDER
//
// It loads at its start what it finds in FOLDER, and writes there from time to time.
import { dirname } from "node:path";
import { fileURLToPath } from "node:url";
import { startServer } from "@langchain/langgraph-api/server";
import * as graphs from "./graphs.mjs";

const here = dirname(fileURLToPath(import.meta.url));
const [port, folder] = process.argv.slice(2);
await startServer({
    port: Number(port),
    host: "127.0.0.1",
    nWorkers: 10,
    cwd: folder,
    graphs: Object.fromEntries(
        Object.keys(graphs).map((name) => [name, `${here}/graphs.mjs:${name}`]),
    ),
});
