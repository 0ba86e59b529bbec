// The programs under test: `heddle serve` and `heddle mock-model`, on free loopback ports.
//
// stop() requires exit status 0 and no sanitizer report, or the test fails.
import { spawn, spawnSync, type ChildProcess } from "node:child_process";
import { createSocket } from "node:dgram";
import {
    existsSync,
    mkdtempSync,
    openSync,
    closeSync,
    readFileSync,
    rmSync,
    writeFileSync,
} from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";

const START_MS = 120_000;
const STOP_MS = 120_000;
const COMPLAINT = /(ERROR: \w+Sanitizer|runtime error:|SUMMARY: \w+Sanitizer)/;
// Variables of the caller's environment that must not reach a test.
const FOREIGN =
    /^(HEDDLE_|LANG|OPENAI_|ANTHROPIC_|GOOGLE_|GEMINI_|CUSTOM_API_KEY|MODEL_NAME|(http|https|all|no)_proxy$)/i;

export type Environment = Record<string, string>;

export function cleanEnvironment(more: Environment = {}): Environment {
    const kept: Environment = {
        ASAN_OPTIONS: "detect_leaks=1:strict_string_checks=1",
        UBSAN_OPTIONS: "halt_on_error=1:print_stacktrace=1",
    };
    for (const [name, value] of Object.entries(process.env)) {
        if (value !== undefined && !FOREIGN.test(name)) kept[name] = value;
    }
    return { ...kept, ...more };
}

/** The program: the build with sanitizers if there is one, unless the test measures speed. */
export function binary(release = false): string {
    const { HEDDLE_BUILD = "build", HEDDLE_BUILD_ASAN } = process.env;
    const folders =
        release || !HEDDLE_BUILD_ASAN ? [HEDDLE_BUILD] : [HEDDLE_BUILD_ASAN, HEDDLE_BUILD];
    const found = folders.map((folder) => join(folder, "heddle")).find((file) => existsSync(file));
    if (!found) throw new Error(`no program called heddle in ${folders.join(" or ")}`);
    return found;
}

// Ports outside of the system's ephemeral range, in shares (tests/api/lib/server.py uses the same):
// a killed server must find its port free again while other tests run on this machine.
const FIRST_PORT = 20_000;
const PORTS_EACH = 200;
const SHARES = 60;

async function isOurs(first: number): Promise<boolean> {
    const mark = createSocket("udp4");
    return new Promise((resolve) => {
        mark.once("error", () => resolve(false));
        mark.bind({ port: first, address: "127.0.0.1", exclusive: true }, () => {
            mark.unref();
            resolve(true);
        });
    });
}

/**
 * Reserves the first port of a share for this process by binding the UDP port with the same number.
 */
async function takeShare(): Promise<number> {
    const from = Math.floor(Math.random() * SHARES);
    for (let i = 0; i < SHARES; i++) {
        const first = FIRST_PORT + ((from + i) % SHARES) * PORTS_EACH;
        if (await isOurs(first)) return first;
    }
    throw new Error("all ports are somebody's");
}

let share: Promise<number> | undefined;
let given = 0;

async function isFree(port: number): Promise<boolean> {
    return new Promise((resolve) => {
        const probe = createServer();
        probe.once("error", () => resolve(false));
        probe.listen(port, "127.0.0.1", () => probe.close(() => resolve(true)));
    });
}

/** A port that no other test uses while this process lives, until its share is used up. */
export async function freePort(): Promise<number> {
    share ??= takeShare();
    const first = await share;
    for (let i = 0; i < PORTS_EACH; i++) {
        const port = first + (given++ % PORTS_EACH);
        if (await isFree(port)) return port;
    }
    throw new Error("no port is free");
}

/** Waits until `condition` returns a value, and returns it. */
export async function waitFor<T>(
    condition: () => Promise<T | false | null | undefined> | T | false | null | undefined,
    what = "a condition",
    ms = 60_000,
): Promise<T> {
    const end = Date.now() + ms;
    for (;;) {
        const value = await condition();
        if (value) return value;
        if (Date.now() > end) throw new Error(`waited ${ms / 1000} s for ${what}`);
        await pause(25);
    }
}

export function newFolder(): string {
    return mkdtempSync(join(tmpdir(), "heddle-browser-"));
}

export type Program = {
    readonly folder: string;
    readonly running: boolean;
    start(): Promise<void>;
    /** SIGTERM: must exit with status 0 and without a sanitizer report. */
    stop(): Promise<void>;
    /** kill -9: the program saves nothing. */
    kill(): Promise<void>;
    log(): string;
    /** Stops it and removes its folder. */
    remove(): Promise<void>;
};

type Plan = { command: string[]; env?: Environment; folder: string; ready: () => Promise<boolean> };

async function answers(url: string): Promise<boolean> {
    try {
        const answer = await fetch(url, { signal: AbortSignal.timeout(30_000) });
        await answer.arrayBuffer();
        return answer.ok;
    } catch {
        return false;
    }
}

export const answersAt = (url: string) => () => answers(url);

export function program({ command, env, folder, ready }: Plan): Program {
    const logFile = join(folder, "log");
    let child: ChildProcess | null = null;
    let ended: Promise<number | null> = Promise.resolve(null);

    const log = () => (existsSync(logFile) ? readFileSync(logFile, "utf8") : "");
    const tail = () => log().slice(-4000);

    async function start() {
        const out = openSync(logFile, "a");
        const [file = "", ...rest] = command;
        const started = spawn(file, rest, {
            cwd: folder,
            env: cleanEnvironment(env),
            stdio: ["ignore", out, out],
        });
        closeSync(out);
        child = started;
        ended = new Promise((resolve) => {
            started.once("exit", (status) => resolve(status));
            started.once("error", () => resolve(-1));
        });
        await waitFor(
            async () => {
                if (started.exitCode !== null)
                    throw new Error(`${command.join(" ")} ended\n${tail()}`);
                return ready();
            },
            `${command.join(" ")} to answer`,
            START_MS,
        );
    }

    async function stop() {
        if (!child) return;
        child.kill("SIGTERM");
        const late = Symbol("late");
        const status = await Promise.race([ended, pause(STOP_MS, late, { ref: false })]);
        if (status === late) {
            await kill();
            throw new Error(`does not end on SIGTERM: ${command.join(" ")}\n${tail()}`);
        }
        child = null;
        if (status !== 0)
            throw new Error(`ended with ${String(status)}: ${command.join(" ")}\n${tail()}`);
        const found = COMPLAINT.exec(log());
        if (found) throw new Error(log().slice(Math.max(0, found.index - 500), found.index + 6000));
    }

    async function kill() {
        if (!child) return;
        child.kill("SIGKILL");
        await ended;
        child = null;
    }

    async function remove() {
        try {
            await stop();
        } finally {
            rmSync(folder, { recursive: true, force: true });
        }
    }

    return {
        folder,
        get running() {
            return child !== null;
        },
        start,
        stop,
        kill,
        log,
        remove,
    };
}

/** Runs `heddle …` to its end and returns its output. */
export function heddleTool(...words: string[]): string {
    const done = spawnSync(binary(), words, {
        env: cleanEnvironment(),
        encoding: "utf8",
        timeout: 60_000,
    });
    if (done.status !== 0)
        throw new Error(`heddle ${words.join(" ")}: ${done.status}\n${done.stdout}${done.stderr}`);
    return done.stdout;
}

export function writeJson(file: string, value: unknown): string {
    writeFileSync(file, JSON.stringify(value, null, 2));
    return file;
}
