/**
 * The worker's hello message. Needs no LangGraph: the server answers a worker whose LangGraph is
 * too old to be imported with the required version.
 */
import { connect, type Socket } from "node:net";
import type { Fields } from "./frame.js";
import { Link } from "./link.js";
import { packageVersion } from "./modules.js";

const PROTOCOL = 1;

export interface WorkerSettings {
    /** A path, or host and port. */
    readonly address: { readonly path: string } | { readonly host: string; readonly port: number };
    readonly key: string;
    /** The project folder when the server is on another machine. */
    readonly folder: string | undefined;
    readonly version: string;
}

function langgraphOf({ folder = process.cwd() }: WorkerSettings): string {
    return packageVersion(folder, "@langchain/langgraph") ?? "";
}

export function helloOf(settings: WorkerSettings): Fields {
    return {
        op: "hello",
        protocol: PROTOCOL,
        runtime: "js",
        version: settings.version,
        language: process.versions.node,
        langgraph: langgraphOf(settings),
        pid: process.pid,
        key: settings.key,
    };
}

export function connected(address: WorkerSettings["address"]): Promise<Socket> {
    return new Promise((resolve, reject) => {
        const socket = connect(address, () => {
            socket.off("error", reject);
            resolve(socket);
        });
        socket.once("error", reject);
    });
}

/**
 * Sends only hello when the project's LangGraph is older than 1.0: the server rejects it with the
 * reason.
 */
export async function refuseOld(settings: WorkerSettings): Promise<void> {
    const version = langgraphOf(settings);
    if (!version.startsWith("0.")) return;
    const link = new Link(await connected(settings.address));
    await link.call(helloOf(settings));
    throw new Error(
        `@langchain/langgraph is ${version}, and graphs need 1.0 or newer: npm install @langchain/langgraph@latest`,
    );
}
