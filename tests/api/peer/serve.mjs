// @langchain/langgraph-api on a loopback port:  node serve.mjs PORT FOLDER
import { dirname } from "node:path";
import { fileURLToPath } from "node:url";
import { startServer } from "@langchain/langgraph-api/server";
import * as graphs from "./graphs.mjs";

const here = dirname(fileURLToPath(import.meta.url));
const [port] = process.argv.slice(2);
await startServer({
  port: Number(port),
  host: "127.0.0.1",
  nWorkers: 10,
  cwd: here,
  graphs: Object.fromEntries(Object.keys(graphs).map((name) => [name, `./graphs.mjs:${name}`])),
});
