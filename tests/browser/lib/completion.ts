// A streamed answer in OpenAI's format, chunk by chunk.
import type { ServerResponse } from "node:http";

const chunk = (delta: object, finish: string | null = null) =>
    `data: ${JSON.stringify({
        id: "answer",
        object: "chat.completion.chunk",
        created: 0,
        model: "test",
        choices: [{ index: 0, delta, finish_reason: finish }],
    })}\n\n`;

export function beginAnswer(answer: ServerResponse) {
    answer.writeHead(200, { "Content-Type": "text/event-stream" });
    answer.write(chunk({ role: "assistant", content: "" }));
}

export function sayPiece(answer: ServerResponse, text: string) {
    answer.write(chunk({ content: text }));
}

export function endAnswer(answer: ServerResponse) {
    answer.end(`${chunk({}, "stop")}data: [DONE]\n\n`);
}
