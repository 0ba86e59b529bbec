// `heddle serve` with a SQLite file that outlives kill() and restart().
import { join } from "node:path";
import { Client } from "@langchain/langgraph-sdk";
import { startFront } from "./front";
import { startMock, type Mock, type Script } from "./mock";
import {
    answersAt,
    binary,
    freePort,
    heddleTool,
    newFolder,
    program,
    writeJson,
    type Environment,
    type Program,
} from "./programs";
import { addPage } from "./watch";

export type ServeOptions = {
    /** The script of its model; without it the built-in rules of the scripted model apply. */
    script?: Script;
    /** Members of the configuration file. */
    config?: Record<string, unknown>;
    /** Requires API keys, which key() creates. For issuers set `config.auth` instead. */
    auth?: boolean;
    env?: Environment;
    /** Additional flags. */
    options?: string[];
    /** The optimised program instead of the one with sanitizers. */
    release?: boolean;
    /** A folder to serve at / instead of the embedded page; default: HEDDLE_PAGE_DIR. */
    page?: string;
};

export type Heddle = Program & {
    /** The URL of the page. It stays the same over restarts. */
    readonly url: string;
    /** The model of this server's agents. */
    readonly model: Mock;
    /** The official client; with a token, as that user. */
    client(token?: string): Client;
    /** One plain request; returns the response's JSON. Throws on an unexpected status. */
    ask<T = unknown>(method: string, path: string, body?: unknown, more?: AskOptions): Promise<T>;
    /** stop() or kill(), and start() on the same port and database. */
    restart(how?: "stop" | "kill"): Promise<void>;
    /** An API key of a user (with `auth`). */
    key(subject: string, ...flags: string[]): string;
};
export type AskOptions = { status?: number; token?: string };

export async function startHeddle(options: ServeOptions = {}): Promise<Heddle> {
    const { release = false, page = process.env.HEDDLE_PAGE_DIR } = options;
    const folder = newFolder();
    const port = await freePort();
    const own = `http://127.0.0.1:${port}`;
    const front = page ? await startFront(page, port) : null;
    const url = front?.url ?? own;
    const model = await startMock(options.script);
    const config: Record<string, unknown> = { drain: 0.1, ...options.config };
    if (options.auth) config.auth ??= { api_keys: true };
    const file = writeJson(join(folder, "config.json"), config);
    const command = [binary(release), "serve", "--host", "127.0.0.1", "--port", String(port)];
    command.push(
        "--store",
        `sqlite:${folder}/heddle.db`,
        "--config",
        file,
        ...(options.options ?? []),
    );
    const env = { OPENAI_BASE_URL: model.baseUrl, OPENAI_API_KEY: "sk-mock", ...options.env };
    const base = program({ command, env, folder, ready: answersAt(`${own}/ok`) });
    addPage(url);
    await base.start();

    async function ask<T>(
        method: string,
        path: string,
        body?: unknown,
        more: AskOptions = {},
    ): Promise<T> {
        const headers: Record<string, string> = { "Content-Type": "application/json" };
        if (more.token) headers.Authorization = `Bearer ${more.token}`;
        const answer = await fetch(own + path, {
            method,
            headers,
            body: body === undefined ? undefined : JSON.stringify(body),
        });
        const text = await answer.text();
        const isWell = more.status === undefined ? answer.ok : answer.status === more.status;
        if (!isWell) throw new Error(`${method} ${path}: ${answer.status} ${text}`);
        return (text ? JSON.parse(text) : null) as T;
    }

    async function remove() {
        try {
            await front?.close();
            await base.remove();
        } finally {
            await model.remove();
        }
    }

    return {
        folder,
        get running() {
            return base.running;
        },
        start: base.start,
        stop: base.stop,
        kill: base.kill,
        log: base.log,
        url,
        model,
        ask,
        remove,
        client: (token) =>
            new Client({
                apiUrl: own,
                apiKey: null,
                defaultHeaders: token ? { Authorization: `Bearer ${token}` } : {},
            }),
        restart: async (how = "stop") => {
            await base[how]();
            await base.start();
        },
        key: (subject, ...flags) => {
            const said = heddleTool("key", "create", "--subject", subject, ...flags, "--config", file,
                "--store", `sqlite:${folder}/heddle.db`); // prettier-ignore
            const key = /hdk_[\w-]+/.exec(said)?.[0];
            if (!key) throw new Error(`no key in: ${said}`);
            return key;
        },
    };
}
