// Creates conversations by the API, which is faster than by the page.
import { randomUUID } from "node:crypto";
import type { Checkpoint, Client, Message, ThreadState } from "@langchain/langgraph-sdk";
import type { Heddle } from "./heddle";

export type State = { messages: Message[] };

export function human(content: string, id: string = randomUUID()) {
    return { messages: [{ id, type: "human" as const, content }] };
}

export type Seeded = { thread: string; client: Client; states: ThreadState<State>[] };

/** A thread with the messages `texts` of the user, in order, and the agent's answers. */
export async function conversation(
    heddle: Heddle,
    texts: string[],
    { title, assistant = "agent", token, config, mayFail = false }: SeedOptions = {},
): Promise<string> {
    const client = heddle.client(token);
    const { thread_id: thread } = await client.threads.create({ metadata: title ? { title } : {} });
    for (const text of texts) {
        await client.runs.wait(thread, assistant, {
            input: human(text),
            config,
            raiseError: !mayFail,
        });
    }
    return thread;
}
export type SeedOptions = {
    title?: string;
    assistant?: string;
    token?: string;
    config?: { configurable: Record<string, unknown> };
    mayFail?: boolean;
};

/** Sends one more message at the end of a thread, or from a checkpoint; waits for the answer. */
export async function say(
    heddle: Heddle,
    thread: string,
    text: string,
    {
        assistant = "agent",
        token,
        config,
        checkpoint,
    }: SeedOptions & { checkpoint?: Checkpoint } = {},
) {
    return heddle.client(token).runs.wait(thread, assistant, {
        input: human(text),
        config,
        checkpoint,
    });
}

/** The checkpoint that an edit or a retry of the message `text` starts from. */
export async function forkOf(heddle: Heddle, thread: string, text: string): Promise<Checkpoint> {
    const history = await heddle.client().threads.getHistory<State>(thread, { limit: 1000 });
    const first = history.findLast((state) =>
        (state.values.messages ?? []).some(
            (message) => message.type === "human" && message.content === text,
        ),
    );
    const parent = first?.parent_checkpoint;
    if (!parent) throw new Error(`nobody said "${text}" in ${thread}`);
    return { ...parent };
}

/** A branch: `text` instead of `instead` (the same text: a retry). */
export async function fork(
    heddle: Heddle,
    thread: string,
    instead: string,
    text = instead,
    assistant = "agent",
) {
    return say(heddle, thread, text, {
        assistant,
        checkpoint: await forkOf(heddle, thread, instead),
    });
}

/** A long thread, written as a state without calls to the model. */
export async function longThread(
    heddle: Heddle,
    messages: number,
    title = `${messages} messages`,
): Promise<string> {
    const client = heddle.client();
    const { thread_id: thread } = await client.threads.create({ metadata: { title } });
    const all = Array.from({ length: messages }, (_, i) =>
        i % 2
            ? {
                  id: `m${i}`,
                  type: "ai",
                  content: `Answer ${i}: **some** \`code\` and a list\n\n- one\n- two`,
              }
            : { id: `m${i}`, type: "human", content: `Question ${i}` },
    );
    await client.runs.wait(thread, "agent", {
        input: { messages: [...all, ...human("The end").messages] },
    });
    return thread;
}

/** An assistant of the graph `agent` with its own configuration. */
export async function assistant(
    heddle: Heddle,
    name: string,
    configurable: Record<string, unknown> = {},
    assistantId?: string,
) {
    const config = { configurable };
    const made = await heddle
        .client()
        .assistants.create({ graphId: "agent", name, config, assistantId });
    return made.assistant_id;
}
