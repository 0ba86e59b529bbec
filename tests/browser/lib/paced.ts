// A model that counts, a word every 40 ms, but not further than a test lets it: whatever happens in
// the middle of an answer happens there, however long a test takes to get to it.
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import { setTimeout as pause } from "node:timers/promises";

export type PacedModel = {
    /** For serve({ env: paced.env }). */
    readonly env: { OPENAI_BASE_URL: string };
    /** How often it was asked so far. */
    readonly calls: number;
    /** How many of its answers nobody waits for any more, though they are not complete. */
    readonly left: number;
    /** Lets it say so many pieces more. */
    goOn(pieces: number): void;
    /** Lets it say the rest. */
    finish(): void;
    close(): Promise<void>;
};

const EVERY_MS = 40;

const chunk = (delta: object, finish: string | null = null) =>
    `data: ${JSON.stringify({
        id: "paced",
        object: "chat.completion.chunk",
        created: 0,
        model: "paced",
        choices: [{ index: 0, delta, finish_reason: finish }],
    })}\n\n`;

async function lastOf(asked: IncomingMessage): Promise<string> {
    const pieces: Buffer[] = [];
    for await (const piece of asked) pieces.push(piece as Buffer);
    const { messages } = JSON.parse(Buffer.concat(pieces).toString()) as {
        messages: { content: unknown }[];
    };
    return String(messages.at(-1)?.content);
}

/**
 * Whoever says "count" gets `pieces`, the last `held` of them after finish(); others "You said: …".
 * `{{call}}` in a piece is the number of the request.
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
            answer.write(chunk({ content: piece.replace("{{call}}", String(call)) }));
            await pause(EVERY_MS);
        }
    }
    async function give(asked: IncomingMessage, answer: ServerResponse) {
        const call = ++calls;
        answer.on("close", () => (left += answer.writableFinished ? 0 : 1));
        const said = await lastOf(asked);
        answer.writeHead(200, { "Content-Type": "text/event-stream" });
        answer.write(chunk({ role: "assistant", content: "" }));
        if (said.includes("count")) await count(answer, call);
        else answer.write(chunk({ content: `You said: ${said}` }));
        answer.end(`${chunk({}, "stop")}data: [DONE]\n\n`);
    }

    const server = createServer((asked, answer) => void give(asked, answer).catch(() => undefined));
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    const address = server.address();
    const port = typeof address === "object" && address ? address.port : 0;
    return {
        env: { OPENAI_BASE_URL: `http://127.0.0.1:${port}/v1` },
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
            return new Promise((resolve) => {
                server.close(() => resolve());
                server.closeAllConnections();
            });
        },
    };
}
