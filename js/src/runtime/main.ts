#!/usr/bin/env node
/**
 * `heddle-runtime`: the worker that `heddle serve` starts for graphs in TypeScript and JavaScript.
 */
import { readFileSync } from "node:fs";
import { refuseOld, type WorkerSettings } from "./hello.js";
import { prepareLoading } from "./loading.js";

function fail(message: string): never {
    console.error(`heddle-runtime: ${message}`);
    process.exit(1);
}

function versionOf(): string {
    const path = new URL("../../package.json", import.meta.url);
    return (JSON.parse(readFileSync(path, "utf8")) as { version: string }).version;
}

function addressOf(env: NodeJS.ProcessEnv): WorkerSettings["address"] {
    if (env.HEDDLE_RUNTIME_SOCKET) return { path: env.HEDDLE_RUNTIME_SOCKET };
    const address = env.HEDDLE_RUNTIME_ADDRESS ?? "";
    const at = address.lastIndexOf(":");
    const port = Number(address.slice(at + 1));
    if (at < 1 || !Number.isInteger(port) || port < 1 || port > 65535) {
        fail("HEDDLE_RUNTIME_SOCKET or HEDDLE_RUNTIME_ADDRESS (host:port) must name the server");
    }
    return { host: address.slice(0, at).replace(/^\[(.*)\]$/, "$1"), port };
}

function settingsOf(env: NodeJS.ProcessEnv): WorkerSettings {
    const address = addressOf(env);
    const folder = "path" in address ? undefined : process.cwd();
    const settings = { address, key: env.HEDDLE_RUNTIME_KEY ?? "", folder, version: versionOf() };
    // Hidden from the graphs' code and from programs that it starts.
    delete env.HEDDLE_RUNTIME_KEY;
    return settings;
}

async function main(): Promise<void> {
    if (process.argv.includes("--version")) return console.log(versionOf());
    const settings = settingsOf(process.env);
    // The server ends its workers by closing the connection; a Ctrl-C in its terminal is handled by
    // the server.
    process.on("SIGINT", () => {});
    // An unhandled rejection must not end the other runs.
    process.on("unhandledRejection", (reason) => console.error("unhandled rejection:", reason));
    process.on("uncaughtException", (error) => console.error("uncaught exception:", error));
    await refuseOld(settings);
    await prepareLoading(process.cwd());
    const { Worker } = await import("./worker.js");
    const worker = await Worker.start(settings);
    await worker.ended();
    process.exit(0);
}

main().catch((error: unknown) => fail(error instanceof Error ? error.message : String(error)));
