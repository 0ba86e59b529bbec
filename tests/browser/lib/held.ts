// A model whose chunks are released by the test: a state in the middle of an answer does not depend
// on time.
import type { ServerResponse } from "node:http";
import { beginAnswer, endAnswer, sayPiece } from "./completion";
import { listen } from "./listen";
import { waitFor } from "./programs";

export type HeldModel = {
    /** For OPENAI_BASE_URL: serve({ env: { OPENAI_BASE_URL: held.baseUrl } }). */
    readonly baseUrl: string;
    /** The number of requests so far. */
    readonly calls: number;
    /** Waits for the n-th request (from 1). */
    asked(call: number): Promise<void>;
    /** Sends a chunk of the n-th answer. */
    say(call: number, text: string): void;
    /** Ends the n-th answer. */
    end(call: number): void;
    close(): Promise<void>;
};

export async function startHeldModel(): Promise<HeldModel> {
    const answers: ServerResponse[] = [];
    const { url, close } = await listen((asked, answer) => {
        asked.resume();
        asked.on("end", () => {
            beginAnswer(answer);
            answers.push(answer);
        });
    });

    const answerOf = (call: number): ServerResponse => {
        const answer = answers[call - 1];
        if (!answer) throw new Error(`the model was asked ${answers.length} times, not ${call}`);
        return answer;
    };
    return {
        baseUrl: `${url}/v1`,
        get calls() {
            return answers.length;
        },
        asked: (call) =>
            waitFor(() => answers.length >= call, `the model to be asked ${call} times`).then(
                () => undefined,
            ),
        say: (call, text) => sayPiece(answerOf(call), text),
        end: (call) => endAnswer(answerOf(call)),
        close,
    };
}
