/** The package as users install it. */
import { execFileSync } from "node:child_process";
import {
    existsSync,
    mkdirSync,
    mkdtempSync,
    readFileSync,
    rmSync,
    statSync,
    symlinkSync,
    utimesSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, expect, it } from "vitest";

const packageDir = dirname(dirname(fileURLToPath(import.meta.url)));
const directory = mkdtempSync(join(tmpdir(), "heddle-pack-"));

afterAll(() => rmSync(directory, { recursive: true, force: true }));

function run(cwd: string, command: string, ...args: string[]): string {
    return execFileSync(command, args, {
        cwd,
        encoding: "utf8",
        stdio: ["ignore", "pipe", "pipe"],
    });
}

it("builds and works from its tarball, without the repository around it", () => {
    run(packageDir, "npm", "pack", "--pack-destination", directory);
    expect(existsSync(join(packageDir, "core"))).toBe(false);
    run(directory, "tar", "xzf", "heddle-0.1.0.tgz");
    const unpacked = join(directory, "package");
    // The packages that npm would install beside it.
    mkdirSync(join(unpacked, "node_modules"));
    for (const name of ["node-api-headers", "@langchain"]) {
        symlinkSync(join(packageDir, "node_modules", name), join(unpacked, "node_modules", name));
    }
    run(unpacked, process.execPath, "scripts/build.mjs");
    const program = `
    import { HeddleSaver } from "./dist/index.js";
    import { emptyCheckpoint } from "@langchain/langgraph-checkpoint";
    const saver = HeddleSaver.fromConnString("memory:");
    const config = await saver.put({ configurable: { thread_id: "t" } }, emptyCheckpoint(), { source: "input", step: -1, parents: {} }, {});
    console.log((await saver.getTuple(config)).metadata.source);
  `;
    expect(run(unpacked, process.execPath, "--input-type=module", "-e", program)).toBe("input\n");
}, 300_000);

it("is compiled again only where something has changed", () => {
    const target = join(packageDir, "build", "heddle.node");
    const object = join(packageDir, "build", "native-answer.o");
    const other = join(packageDir, "build", "native-call.o");
    const times = () => [target, object, other].map((path) => statSync(path).mtimeMs);
    run(packageDir, process.execPath, "scripts/build.mjs");
    const before = times();
    run(packageDir, process.execPath, "scripts/build.mjs");
    expect(times()).toEqual(before);
    const source = join(packageDir, "native", "answer.c");
    const { atime, mtime } = statSync(source);
    try {
        utimesSync(source, new Date(), new Date());
        run(packageDir, process.execPath, "scripts/build.mjs");
    } finally {
        utimesSync(source, atime, mtime);
    }
    const after = times();
    expect(after[0]).toBeGreaterThan(before[0]!);
    expect(after[1]).toBeGreaterThan(before[1]!);
    expect(after[2]).toBe(before[2]);
}, 120_000);

it("has a lockfile that names no registry", () => {
    const lock = JSON.parse(readFileSync(join(packageDir, "package-lock.json"), "utf8")) as {
        packages: Record<string, { resolved?: string }>;
    };
    expect(Object.keys(lock.packages).length).toBeGreaterThan(50);
    expect(Object.values(lock.packages).filter(({ resolved }) => resolved !== undefined)).toEqual(
        [],
    );
});
