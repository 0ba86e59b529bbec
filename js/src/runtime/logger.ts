/**
 * The logger that `getLogger()` of `@langchain/langgraph-sdk/logging` returns: LangGraph's own
 * server registers one under the same symbol before it loads a graph. Lines go to standard output,
 * which is the server's log.
 */
import { AsyncLocalStorageProviderSingleton } from "@langchain/core/singletons";
import type { Fields } from "./frame.js";
import { render } from "./render.js";

const GLOBAL_LOGGER = Symbol.for("langgraph.api.sdk-logger");

/** From the most to the least severe; `LOG_LEVEL` names the last one that is written. */
const LEVELS = [
    "error",
    "warn",
    "help",
    "data",
    "info",
    "debug",
    "prompt",
    "http",
    "verbose",
    "input",
    "silly",
] as const;

type Level = (typeof LEVELS)[number];
type LogMethod = (message: unknown, ...more: unknown[]) => Logger;
export type Logger = Readonly<Record<Level, LogMethod>> & {
    log(level: string, message: unknown, ...more: unknown[]): Logger;
};

function isObject(value: unknown): value is Fields {
    return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** The node that writes the line, if any. */
function nodeOf(): Fields {
    const config = AsyncLocalStorageProviderSingleton.getRunnableConfig() as
        { metadata?: Fields } | undefined;
    const node = config?.metadata?.langgraph_node;
    return node === undefined ? {} : { langgraph_node: node };
}

function membersOf(value: unknown): Fields {
    if (value instanceof Error) return { error: value.stack ?? String(value) };
    return isObject(value) ? value : { value };
}

/** `info: text {"member":1}`, on one line. */
export function lineOf(level: string, message: unknown, more: readonly unknown[]): string {
    const {
        message: text,
        level: _level,
        ...rest
    } = isObject(message) && !(message instanceof Error) ? message : { message };
    const shown =
        text instanceof Error
            ? (text.stack ?? String(text))
            : typeof text === "string"
              ? text
              : render(text ?? null);
    const members: Fields = Object.assign({ ...nodeOf(), ...rest }, ...more.map(membersOf));
    return Object.keys(members).length > 0
        ? `${level}: ${shown} ${render(members)}`
        : `${level}: ${shown}`;
}

export function makeLogger(lowest: string | undefined, write: (line: string) => void): Logger {
    const found = LEVELS.indexOf((lowest ?? "debug").toLowerCase() as Level);
    const limit = found < 0 ? LEVELS.indexOf("debug") : found;
    const logger: Fields = {};
    LEVELS.forEach((level, index) => {
        logger[level] = (message: unknown, ...more: unknown[]) => {
            if (index <= limit) write(lineOf(level, message, more));
            return logger;
        };
    });
    logger.log = (level: string, message: unknown, ...more: unknown[]) => {
        const method = logger[level];
        return typeof method === "function" && level !== "log" ? method(message, ...more) : logger;
    };
    return logger as unknown as Logger;
}

/** Registered before graphs are loaded: many get their logger at the top of the file. */
export function registerLogger(): void {
    (globalThis as Record<symbol, unknown>)[GLOBAL_LOGGER] = makeLogger(
        process.env.LOG_LEVEL,
        console.log,
    );
}
