/** Formats errors of user code for the server, with the location in the user's files. */
import { fileURLToPath } from "node:url";
import type { Fields } from "./frame.js";

const MAX_TRACE = 64 * 1024;

/** Frames of packages and of Node itself are irrelevant for user code. */
function isOfUser(line: string): boolean {
    return !/node:|[\\/]node_modules[\\/]|\(native\)|<anonymous>\)$|[\\/]heddle[\\/]dist[\\/]/.test(
        line,
    );
}

const PLACE = /\(?((?:file:\/\/)?\/[^()]*?|[A-Za-z]:\\[^()]*?):(\d+):\d+\)?$/;

function placeOf(line: string): { file: string; line: number } | undefined {
    const [, path, number] = PLACE.exec(line.trim().replace(/^at /, "")) ?? [];
    if (path === undefined) return undefined;
    // Reloaded modules have a query in their URL.
    const file = path.replace(/\?.*$/, "");
    return { file: file.startsWith("file://") ? fileURLToPath(file) : file, line: Number(number) };
}

/** A trace without the frames of packages; with all frames when none is the user's. */
function trimmed(stack: string): { trace: string; frames: readonly string[] } {
    const lines = stack.split("\n");
    const first = lines.findIndex((line) => /^\s+at /.test(line));
    if (first < 0) return { trace: stack, frames: [] };
    const frames = lines.slice(first);
    const own = frames.filter(isOfUser);
    const shown = own.length > 0 ? own : frames;
    return { trace: [...lines.slice(0, first), ...shown].join("\n"), frames: own };
}

function nameOf(error: Error): string {
    const { name } = error;
    if (name !== "Error" && typeof name === "string" && name !== "") return name;
    return error.constructor?.name || "Error";
}

/** `{type, message}` and, where known, `traceback`, `file` and `line`. */
export function failureOf(error: unknown): Fields {
    if (!(error instanceof Error)) return { type: "Error", message: textOf(error) };
    const failure: Fields = { type: nameOf(error), message: String(error.message) };
    const { trace, frames } = trimmed(String(error.stack ?? ""));
    if (trace !== "") failure.traceback = withCause(trace, error).slice(0, MAX_TRACE);
    const place = frames.map(placeOf).find((found) => found !== undefined) ?? syntaxPlace(error);
    return { ...failure, ...place };
}

/** The same for the log. */
export function describe({ type, message, traceback, file, line }: Fields): string {
    const place = file === undefined ? "" : ` (${String(file)}:${String(line)})`;
    return `${place}\n${String(traceback ?? `${String(type)}: ${String(message)}`)}`;
}

function withCause(trace: string, error: Error): string {
    const { cause } = error;
    if (!(cause instanceof Error) || cause === error) return trace;
    return `${trace}\ncaused by ${trimmed(String(cause.stack ?? cause)).trace}`;
}

/** Compilers write the location before the message: `/a/b.ts:3:7: ERROR: …`. */
function syntaxPlace(error: Error): { file: string; line: number } | undefined {
    const text = `${error.message}\n${error.stack ?? ""}`;
    const [, path, line] = /^(?:file:\/\/)?(\/[^\n:]+):(\d+)/m.exec(text) ?? [];
    return path === undefined ? undefined : { file: path.replace(/\?.*$/, ""), line: Number(line) };
}

function textOf(value: unknown): string {
    if (typeof value === "string") return value;
    try {
        return JSON.stringify(value) ?? String(value);
    } catch {
        return String(value);
    }
}
