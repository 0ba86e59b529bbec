// A model that counts, a word every 40 ms, but not beyond the limit set by the test: an event in
// the middle of an answer happens there, however long the test takes.
import type { IncomingMessage, ServerResponse } from "node:http";
import { setTimeout as pause } from "node:timers/promises";
import { beginAnswer, endAnswer, sayPiece } from "./completion";
import { listen } from "./listen";

export type PacedModel = {
    /** For serve({ env: paced.env }). */
    readonly env: { OPENAI_BASE_URL: string };
    /** The number of requests so far. */
    readonly calls: number;
    /** The number of incomplete answers whose request was cancelled. */
    readonly left: number;
    /** Allows this many more pieces. */
    goOn(pieces: number): void;
    /** Allows the rest. */
    finish(): void;
    close(): Promise<void>;
};

const EVERY_MS = 40;

async function lastOf(asked: IncomingMessage): Promise<string> {
    const pieces: Buffer[] = [];
    for await (const piece of asked) pieces.push(piece as Buffer);
    const { messages } = JSON.parse(Buffer.concat(pieces).toString()) as {
        messages: { content: unknown }[];
    };
    return String(messages.at(-1)?.content);
}

/**
 * A message with "count" gets `pieces`, the last `held` of them after finish(); other messages get
 * an echo. `{{call}}` in a piece is the number of the request.
 */
export async function startPacedModel(pieces: string[], held: number): Promise<PacedModel> {
    let calls = 0;
    let left = 0;
    let allowed = pieces.length - held;
    let waiting: (() => void)[] = [];

    function goOn(more: number) {
        allowed += more;
        const woken = waiting;
        waiting = [];
        for (const wake of woken) wake();
    }
    async function count(answer: ServerResponse, call: number) {
        for (const [at, piece] of pieces.entries()) {
            while (at >= allowed) await new Promise<void>((resolve) => waiting.push(resolve));
            if (answer.destroyed) return;
            sayPiece(answer, piece.replace("{{call}}", String(call)));
            await pause(EVERY_MS);
        }
    }
    async function give(asked: IncomingMessage, answer: ServerResponse) {
        const call = ++calls;
        answer.on("close", () => (left += answer.writableFinished ? 0 : 1));
        const said = await lastOf(asked);
        beginAnswer(answer);
        if (said.includes("count")) await count(answer, call);
        else sayPiece(answer, `You said: ${said}`);
        endAnswer(answer);
    }

    const server = await listen((asked, answer) => void give(asked, answer).catch(() => undefined));
    return {
        env: { OPENAI_BASE_URL: `${server.url}/v1` },
        get calls() {
            return calls;
        },
        get left() {
            return left;
        },
        goOn,
        finish: () => goOn(held),
        close: () => {
            goOn(held);
            return server.close();
        },
    };
}
