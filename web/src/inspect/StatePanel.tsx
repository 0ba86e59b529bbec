// The stored state at the shown checkpoint of an agent, for developers of agents.
import type { ThreadState } from "@langchain/langgraph-sdk";
import { useState, type ReactNode } from "react";
import { nameOf, useAssistants } from "@/api/assistants";
import type { State } from "@/api/heddle";
import type { AgentChat } from "@/chat/agentChat";
import { useOpenThread } from "@/chat/openThread";
import { CopyButton } from "@/threads/CopyButton";
import { fullDate } from "@/threads/dates";
import { Changes } from "./Changes";
import { History } from "./History";
import { JsonNode } from "./JsonTree";
import styles from "./StatePanel.module.css";

function Part({
    title,
    children,
    isOpen = true,
}: {
    title: string;
    children: ReactNode;
    isOpen?: boolean;
}) {
    const [open, setOpen] = useState(isOpen);
    return (
        <details
            className={styles.part}
            open={open}
            onToggle={(event) => setOpen(event.currentTarget.open)}
        >
            <summary>
                <h3>{title}</h3>
            </summary>
            {open && children}
        </details>
    );
}

function Point({ state, chat }: { state: ThreadState<State>; chat: AgentChat }) {
    const { checkpoint, parent_checkpoint, metadata, created_at, next } = state;
    const id = checkpoint.checkpoint_id ?? "";
    const parent = parent_checkpoint?.checkpoint_id;
    return (
        <dl className={styles.facts}>
            <dt>Checkpoint</dt>
            <dd className={styles.id}>
                <code title={id}>{id}</code>
                <CopyButton text={id} label="Copy the checkpoint ID" />
            </dd>
            <dt>Parent</dt>
            <dd className={styles.id}>
                {parent ? (
                    <button
                        type="button"
                        className={styles.parent}
                        title={parent}
                        onClick={() => chat.show(parent)}
                    >
                        <span className="visually-hidden">Go to the parent </span>
                        <code>{parent}</code>
                    </button>
                ) : (
                    "none (first checkpoint)"
                )}
            </dd>
            <dt>Created</dt>
            <dd>{created_at ? fullDate(created_at) : "unknown"}</dd>
            <dt>Step</dt>
            <dd>
                {String(metadata?.step ?? "–")}, by {String(metadata?.source ?? "–")}
            </dd>
            <dt>Next</dt>
            <dd>
                {next.length > 0
                    ? next.map((node) => (
                          <code key={node} className={styles.node}>
                              {node}
                          </code>
                      ))
                    : "none (finished)"}
            </dd>
        </dl>
    );
}

function Tasks({ tasks }: { tasks: ThreadState<State>["tasks"] }) {
    return (
        <ul className={styles.tasks}>
            {tasks.map((task) => (
                <li key={task.id}>
                    <div className={styles.task}>
                        <code className={styles.node}>{task.name}</code>
                        <code className={styles.taskId} title={task.id}>
                            {task.id}
                        </code>
                    </div>
                    {task.error && (
                        <p className={styles.error}>
                            {typeof task.error === "string"
                                ? task.error
                                : JSON.stringify(task.error)}
                        </p>
                    )}
                    {task.interrupts.map((one, at) => (
                        <JsonNode key={one.id ?? at} name="interrupt" value={one} />
                    ))}
                </li>
            ))}
        </ul>
    );
}

function StateOf({ chat, threadId }: { chat: AgentChat; threadId: string }) {
    const { state, assistantId } = chat;
    if (!state)
        return (
            <p className={styles.soft}>
                {chat.phase === "loading" ? "Loading…" : "No state is stored yet."}
            </p>
        );
    const id = state.checkpoint.checkpoint_id ?? "";
    return (
        <>
            <Point state={state} chat={chat} />
            {state.tasks.length > 0 && (
                <Part title="Tasks">
                    <Tasks tasks={state.tasks} />
                </Part>
            )}
            <Part title="Values">
                {Object.entries(state.values ?? {}).map(([name, value]) => (
                    <JsonNode key={`${id}:${name}`} name={name} value={value} />
                ))}
            </Part>
            <Part title="Changes since the parent">
                <Changes key={id} threadId={threadId} assistantId={assistantId} state={state} />
            </Part>
            <Part title="Metadata" isOpen={false}>
                <JsonNode key={id} name="metadata" value={state.metadata} isOpen />
            </Part>
            <Part title="JSON" isOpen={false}>
                <JsonNode key={id} name="checkpoint" value={state} isOpen />
            </Part>
            <Part title="History">
                <History key={assistantId} threadId={threadId} chat={chat} />
            </Part>
        </>
    );
}

export function StatePanel() {
    const { chats, active, threadId } = useOpenThread();
    const { list } = useAssistants();
    const [chosen, setChosen] = useState<string | null>(null);
    const chat = chats.find((one) => one.assistantId === chosen) ?? active ?? chats[0];
    if (!chat) return <p className={styles.soft}>No state is stored yet.</p>;
    return (
        <div className={styles.panel}>
            {chats.length > 1 && (
                <label className={styles.agent}>
                    Agent
                    <select
                        value={chat.assistantId}
                        onChange={(event) => setChosen(event.target.value)}
                    >
                        {chats.map(({ assistantId }) => (
                            <option key={assistantId} value={assistantId}>
                                {nameOf(list.find((one) => one.assistant_id === assistantId))}
                            </option>
                        ))}
                    </select>
                </label>
            )}
            <StateOf key={chat.assistantId} chat={chat} threadId={threadId} />
        </div>
    );
}
