// @langchain/langgraph-api with the graphs beside this file:  node peer.mjs PORT FOLDER
import { startServer } from "@langchain/langgraph-api/server";
import { fileURLToPath } from "node:url";

const [port, folder] = process.argv.slice(2);
const file = fileURLToPath(new URL("graphs.mjs", import.meta.url));
startServer({
    port: Number(port),
    host: "127.0.0.1",
    nWorkers: 64, // so that 64 at once are not held up by its default of 10
    cwd: folder,
    graphs: { echo: `${file}:echo`, loop: `${file}:loop` },
});
