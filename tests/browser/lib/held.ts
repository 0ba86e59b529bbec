// A model whose words come when a test says so: what is seen in the middle of an answer does not
// depend on time.
import { createServer, type ServerResponse } from "node:http";
import { waitFor } from "./programs";

export type HeldModel = {
    /** For OPENAI_BASE_URL: serve({ env: { OPENAI_BASE_URL: held.baseUrl } }). */
    readonly baseUrl: string;
    /** How often it was asked so far. */
    readonly calls: number;
    /** Waits until it is asked for the n-th time (from 1). */
    asked(call: number): Promise<void>;
    /** Says a piece of the n-th answer. */
    say(call: number, text: string): void;
    /** Ends the n-th answer. */
    end(call: number): void;
    close(): Promise<void>;
};

const chunk = (delta: object, finish: string | null = null) =>
    `data: ${JSON.stringify({
        id: "held",
        object: "chat.completion.chunk",
        created: 0,
        model: "held",
        choices: [{ index: 0, delta, finish_reason: finish }],
    })}\n\n`;

export async function startHeldModel(): Promise<HeldModel> {
    const answers: ServerResponse[] = [];
    const server = createServer((asked, answer) => {
        asked.resume();
        asked.on("end", () => {
            answer.writeHead(200, { "Content-Type": "text/event-stream" });
            answer.write(chunk({ role: "assistant", content: "" }));
            answers.push(answer);
        });
    });
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    const address = server.address();
    const port = typeof address === "object" && address ? address.port : 0;

    const answerOf = (call: number): ServerResponse => {
        const answer = answers[call - 1];
        if (!answer) throw new Error(`the model was asked ${answers.length} times, not ${call}`);
        return answer;
    };
    return {
        baseUrl: `http://127.0.0.1:${port}/v1`,
        get calls() {
            return answers.length;
        },
        asked: (call) =>
            waitFor(() => answers.length >= call, `the model to be asked ${call} times`).then(
                () => undefined,
            ),
        say: (call, text) => void answerOf(call).write(chunk({ content: text })),
        end: (call) => void answerOf(call).end(`${chunk({}, "stop")}data: [DONE]\n\n`),
        close: () =>
            new Promise((resolve) => {
                server.close(() => resolve());
                server.closeAllConnections();
            }),
    };
}
