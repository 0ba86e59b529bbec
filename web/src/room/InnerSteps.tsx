// The inner steps of an answer: the messages of its run in the agent's own conversation.
import type { Message } from "@langchain/langgraph-sdk";
import { useState } from "react";
import { reasonOf } from "@/api/client";
import { getState } from "@/api/heddle";
import { formatRoute } from "@/app/route";
import { Markdown } from "@/chat/Markdown";
import { callsOf, partsOf } from "@/chat/parts";
import { ToolCalls } from "@/chat/ToolCalls";
import styles from "./Message.module.css";
import type { ChatMessage } from "./types";

/** The messages after the last one that was given to the run. */
export function stepsOf(messages: readonly Message[]): Message[] {
    const last = messages.findLastIndex((message) => message.type === "human");
    return messages.slice(last + 1);
}

function Steps({ messages }: { messages: Message[] }) {
    const calling = messages.filter((one) => one.type === "ai" && callsOf(one).length > 0);
    if (calling.length === 0) return <p>The agent answered without tools.</p>;
    return calling.map((message, at) => {
        const { text, reasoning } = partsOf(message);
        const results = messages.filter((one) => one.type === "tool");
        return (
            <div key={message.id ?? at}>
                {reasoning && <Markdown text={reasoning} keepsLines />}
                {text && <Markdown text={text} />}
                <ToolCalls message={message} results={results} pending="none" />
            </div>
        );
    });
}

export function InnerSteps({ message }: { message: ChatMessage }) {
    const [steps, setSteps] = useState<Message[] | null>(null);
    const [problem, setProblem] = useState<string | null>(null);
    const { thread_id: threadId, checkpoint_id: checkpointId, sender } = message;
    if (!checkpointId) return null;
    const load = () => {
        setProblem(null);
        getState(threadId, { assistantId: sender.id, checkpointId }).then(
            ({ values }) => setSteps(stepsOf(values.messages ?? [])),
            (error: unknown) => setProblem(reasonOf(error)),
        );
    };
    const inner = formatRoute({
        view: "chat",
        threadId,
        at: checkpointId,
        agent: sender.id,
        isInner: true,
    });
    return (
        <details
            className={styles.steps}
            onToggle={(event) => event.currentTarget.open && steps === null && load()}
        >
            <summary>Steps</summary>
            <div>
                {problem && <p role="alert">The steps could not be loaded. {problem}</p>}
                {!problem && steps === null && <p role="status">Loading…</p>}
                {steps && <Steps messages={steps} />}
                <a href={inner}>Open the agent’s own conversation</a>
            </div>
        </details>
    );
}
