/**
 * The databases of every suite. HEDDLE_TEST_PG_URL names a PostgreSQL server
 * (tests/lib/with-postgres starts one); each store gets its own schema or file.
 */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { HeddleSaver, type HeddleSaverOptions } from "../../src/index.js";

const directory = mkdtempSync(join(tmpdir(), "heddle-js-"));
process.on("exit", () => rmSync(directory, { recursive: true, force: true }));

let count = 0;

export function temporaryPath(name = "store"): string {
    return join(directory, `${name}-${++count}.db`);
}

export function postgresUrl(): string {
    const url = process.env.HEDDLE_TEST_PG_URL;
    if (!url) throw new Error("run this under tests/lib/with-postgres");
    return url;
}

function withSchema(url: string): string {
    const schema = `js_${process.pid}_${Date.now().toString(36)}_${++count}`;
    return `${url}${url.includes("?") ? "&" : "?"}schema=${schema}&pool=2`;
}

/** A URL of an empty database. */
export const databases: readonly (readonly [name: string, fresh: () => string])[] = [
    ["memory", () => "memory:"],
    ["SQLite", () => `sqlite:${temporaryPath()}?durability=relaxed`],
    ["PostgreSQL", () => withSchema(postgresUrl())],
];

/** Closes the savers created here after each test. */
const open: HeddleSaver[] = [];

export function saverOn(url: string, options?: HeddleSaverOptions): HeddleSaver {
    const saver = HeddleSaver.fromConnString(url, options);
    open.push(saver);
    return saver;
}

export async function closeSavers(): Promise<void> {
    await Promise.all(open.splice(0).map((saver) => saver.close()));
}

export async function collect<T>(items: AsyncIterable<T>): Promise<T[]> {
    const result: T[] = [];
    for await (const item of items) result.push(item);
    return result;
}
