// A scripted model: `heddle mock-model` (docs/mock-model.md). Without a script it answers "You
// said: …", calls tools by `use NAME with {…}`, is slow by `slowly` and fails by `fail with 500`.
import { join } from "node:path";
import {
    answersAt,
    binary,
    freePort,
    newFolder,
    program,
    writeJson,
    type Program,
} from "./programs";

export type Rule = {
    when?: {
        contains?: string | string[];
        equals?: string;
        role?: string;
        user?: string | string[];
        system?: string | string[];
        tool_results?: boolean | number;
        tool?: string;
        model?: string;
        call?: number;
    };
    content?: string;
    reasoning?: string;
    tool_calls?: { name: string; args: unknown; id?: string }[] | "asked" | number;
    error?: { status: number; message?: string; type?: string; retry_after?: number };
    times?: number;
    latency_ms?: number;
    delay_ms?: number;
    pieces?: "word" | "whole" | { characters: number } | { chunks: number };
    cut?: number;
    hang?: boolean;
};
export type Script = {
    rules: Rule[];
    delay_ms?: number;
    latency_ms?: number;
    pieces?: Rule["pieces"];
};

export type Request = {
    number: number;
    path: string;
    body: { model?: string; messages: { role: string; content: unknown }[]; tools?: unknown[] };
    status: number;
    rule: number | null;
    done: boolean;
    gone: boolean;
    pieces: number;
};

export type Mock = Program & {
    readonly url: string;
    /** For OPENAI_BASE_URL, or `base_url` of an assistant's configurable. */
    readonly baseUrl: string;
    /** A configurable for a run or an assistant that uses this model. */
    configurable(more?: object): Record<string, unknown>;
    /** The recorded requests, oldest first. */
    requests(): Promise<Request[]>;
    /** Clears the recorded requests and restarts the script. */
    forget(): Promise<void>;
};

export async function startMock(script?: Script): Promise<Mock> {
    const port = await freePort();
    const folder = newFolder();
    const url = `http://127.0.0.1:${port}`;
    const command = [binary(), "mock-model", "--port", String(port)];
    if (script) command.push(writeJson(join(folder, "script.json"), script));
    const base = program({ command, folder, ready: answersAt(`${url}/mock/requests`) });
    await base.start();
    return Object.assign(base, {
        url,
        baseUrl: `${url}/v1`,
        configurable: (more: object = {}) => ({
            base_url: `${url}/v1`,
            custom_model_name: "mock",
            custom_api_key: "sk-mock",
            ...more,
        }),
        requests: async () => (await (await fetch(`${url}/mock/requests`)).json()) as Request[],
        forget: async () => {
            await fetch(`${url}/mock/requests`, { method: "DELETE" });
        },
    });
}
