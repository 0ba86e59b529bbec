/**
 * The server's end of the runtime protocol, for tests: starts a worker, keeps checkpoints in memory
 * and calls operations for the test.
 */
import { spawn, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { createServer, type Server, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import {
    encodeFrame,
    FrameReader,
    FrameType,
    member,
    type Blob,
    type Fields,
    type Frame,
} from "../../src/runtime/frame.js";
import { StubItems, StubStore } from "./stub-store.js";

export interface Piece {
    readonly mode: string;
    readonly ns: string;
    readonly data: unknown;
}

export interface Ended {
    readonly type: FrameType;
    readonly head: Fields;
    readonly blobs: readonly Buffer[];
    readonly pieces: readonly Frame[];
}

interface Open {
    readonly thread: string;
    readonly pieces: Frame[];
    readonly end: (ended: Ended) => void;
    readonly onPiece: ((frame: Frame) => void) | undefined;
}

export interface CallOptions {
    readonly thread?: string;
    readonly blobs?: readonly Blob[];
    readonly onPiece?: (frame: Frame) => void;
}

/** Responses set by a test, in place of the store's. */
export type Override = (
    frame: Frame,
) => Promise<{ head?: Fields; blobs?: Blob[]; error?: Fields } | undefined>;

const PACKAGE = fileURLToPath(new URL("../../", import.meta.url));
const MAIN = join(PACKAGE, "dist", "runtime", "main.js");

export class StubServer {
    readonly store = new StubStore();
    readonly items = new StubItems();
    readonly asked: Fields[] = [];
    readonly log: string[] = [];
    ready: Fields | undefined;
    hello: Fields | undefined;
    override: Override | undefined;
    readonly #directory = mkdtempSync(join(tmpdir(), "heddle-rt-"));
    readonly #open = new Map<number, Open>();
    #server: Server | undefined;
    #socket: Socket | undefined;
    #process: ChildProcess | undefined;
    #lastId = 0;
    #isReady: (() => void) | undefined;

    /** Starts a worker for a project and waits until it is ready. */
    static async start(project: Fields, env: NodeJS.ProcessEnv = {}): Promise<StubServer> {
        const stub = new StubServer();
        const path = join(stub.#directory, "socket");
        stub.#server = createServer((socket) => stub.#accept(socket, project)).listen(path);
        await once(stub.#server, "listening");
        const ready = new Promise<void>((resolve) => (stub.#isReady = resolve));
        const child = spawn(process.execPath, [MAIN], {
            cwd: project.folder as string,
            env: {
                ...process.env,
                NODE_OPTIONS: "",
                ...env,
                HEDDLE_RUNTIME_SOCKET: path,
                HEDDLE_RUNTIME_KEY: "k",
            },
            stdio: ["ignore", "pipe", "pipe"],
        });
        stub.#process = child;
        for (const stream of [child.stdout, child.stderr])
            stream?.on("data", (text) => stub.log.push(String(text)));
        const ended = once(child, "exit").then(([code]) => {
            throw new Error(`the worker ended with ${code}: ${stub.log.join("")}`);
        });
        await Promise.race([ready, ended]);
        ended.catch(() => {});
        return stub;
    }

    get pid(): number {
        return this.#process!.pid!;
    }

    /** Calls the worker. */
    call(head: Fields, options: CallOptions = {}): { id: number; ended: Promise<Ended> } {
        const id = ++this.#lastId;
        const ended = new Promise<Ended>((end) => {
            this.#open.set(id, {
                thread: options.thread ?? "t",
                pieces: [],
                end,
                onPiece: options.onPiece,
            });
        });
        this.send(FrameType.Call, id, head, options.blobs);
        return { id, ended };
    }

    send(type: FrameType, id: number, head: Fields, blobs: readonly Blob[] = []): void {
        for (const buffer of encodeFrame(type, id, JSON.stringify(head), blobs))
            this.#socket!.write(buffer);
    }

    sendBytes(bytes: Buffer): void {
        this.#socket!.write(bytes);
    }

    /** Runs a graph as the server does. */
    async run(graph: string, head: Fields, options: CallOptions = {}) {
        const ended = await this.begin(graph, head, options).ended;
        return outcomeOf(ended);
    }

    begin(graph: string, head: Fields, options: CallOptions = {}) {
        const thread = options.thread ?? "t";
        const config = {
            configurable: { thread_id: thread },
            metadata: { run_id: `run-${this.#lastId}` },
        };
        const run_id = `00000000-0000-4000-8000-${String(this.#lastId).padStart(12, "0")}`;
        return this.call(
            {
                op: "run",
                graph,
                run_id,
                thread_id: thread,
                attempt: 1,
                config,
                modes: ["values"],
                subgraphs: false,
                ...head,
            },
            options,
        );
    }

    exited(): Promise<unknown> {
        return this.#process!.exitCode !== null ? Promise.resolve() : once(this.#process!, "exit");
    }

    async close(): Promise<void> {
        this.#socket?.destroy();
        this.#server?.close();
        await this.exited();
        rmSync(this.#directory, { recursive: true, force: true });
    }

    #accept(socket: Socket, project: Fields): void {
        this.#socket = socket;
        const reader = new FrameReader();
        socket.on("error", () => {});
        socket.on("data", (bytes: Buffer) => {
            for (const frame of reader.push(bytes)) this.#take(frame, project);
        });
    }

    #take(frame: Frame, project: Fields): void {
        if (frame.type === FrameType.Call) return void this.#answer(frame, project);
        const open = this.#open.get(frame.id);
        if (open === undefined) return;
        if (frame.type === FrameType.Piece) {
            open.pieces.push(frame);
            open.onPiece?.(frame);
            return;
        }
        this.#open.delete(frame.id);
        open.end({ type: frame.type, head: frame.head, blobs: frame.blobs, pieces: open.pieces });
    }

    async #answer(frame: Frame, project: Fields): Promise<void> {
        const { id, head } = frame;
        if (head.op !== "hello") this.asked.push(head);
        const other = await this.override?.(frame);
        if (other?.error !== undefined) return this.send(FrameType.Error, id, other.error);
        if (other !== undefined)
            return this.send(FrameType.Answer, id, other.head ?? {}, other.blobs);
        if (head.op === "hello") {
            this.hello = head;
            return this.send(FrameType.Answer, id, {
                protocol: 1,
                version: "0.1.0",
                worker: 1,
                project,
            });
        }
        if (head.op === "ready") {
            this.ready = head;
            this.send(FrameType.Answer, id, {});
            return this.#isReady?.();
        }
        const open = this.#open.get(head.call as number);
        if (head.call !== undefined && open === undefined) {
            return this.send(FrameType.Error, id, {
                type: "Error",
                code: "gone",
                message: "that call has ended",
            });
        }
        const answer =
            head.op === "items"
                ? await this.items.carryOut(frame)
                : this.store.carryOut(open?.thread ?? "", frame);
        this.send(FrameType.Answer, id, answer.head, answer.blobs);
    }
}

export function outcomeOf({ type, head, blobs, pieces }: Ended) {
    const shown = pieces.map((frame): Piece => {
        const data = JSON.parse(frame.blobs[0]!.toString()) as unknown;
        return { mode: frame.head.mode as string, ns: frame.head.ns as string, data };
    });
    const output = blobs.length > 0 ? (JSON.parse(blobs[0]!.toString()) as unknown) : undefined;
    return { type, head, status: head.status, output, pieces: shown };
}

export { FrameType, member };
