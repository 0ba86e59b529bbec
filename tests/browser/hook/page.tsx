// The smallest page with branches, on the official hook alone.
import { useState } from "react";
import { createRoot } from "react-dom/client";
import type { Checkpoint, Message } from "@langchain/langgraph-sdk";
import { useStream } from "@langchain/langgraph-sdk/react";

type State = { messages: Message[] };
type Thread = ReturnType<typeof useStream<State>>;

const fresh = (content: Message["content"]) => ({
    id: crypto.randomUUID(),
    type: "human" as const,
    content,
});

/**
 * The checkpoint that a message was input at. A retry of a retry starts there too, so that all
 * retries are alternatives.
 */
function forkOf(
    thread: Thread,
    parent: Checkpoint | null | undefined,
): Checkpoint | null | undefined {
    const at = thread.history.find(
        ({ checkpoint }) => checkpoint?.checkpoint_id === parent?.checkpoint_id,
    );
    const above = thread.history.find(
        ({ checkpoint }) => checkpoint?.checkpoint_id === at?.parent_checkpoint?.checkpoint_id,
    );
    return above && above.metadata?.source === "input" ? forkOf(thread, above.checkpoint) : parent;
}

function Switcher({
    thread,
    branch,
    options,
}: {
    thread: Thread;
    branch: string;
    options: string[];
}) {
    const at = options.indexOf(branch);
    const go = (step: number) => {
        const next = options[at + step];
        if (next !== undefined) thread.setBranch(next);
    };
    return (
        <div role="group" aria-label="Branches">
            <span>{`${at + 1} / ${options.length}`}</span>
            <button disabled={at <= 0} onClick={() => go(-1)}>
                Previous
            </button>
            <button disabled={at + 1 >= options.length} onClick={() => go(1)}>
                Next
            </button>
        </div>
    );
}

function Human({ thread, message }: { thread: Thread; message: Message }) {
    const [draft, setDraft] = useState<string | null>(null);
    const meta = thread.getMessagesMetadata(message);
    const options = meta?.branchOptions ?? [];
    const parent = forkOf(thread, meta?.firstSeenState?.parent_checkpoint);

    // New ids: with the old id the message would be replaced on every branch.
    function again(content: Message["content"]) {
        setDraft(null);
        const next = fresh(content);
        void thread.submit(
            { messages: [next] },
            {
                checkpoint: parent ?? undefined,
                optimisticValues: (before) => {
                    const all = before.messages ?? [];
                    const at = all.findIndex(({ id }) => id === message.id);
                    return {
                        ...before,
                        messages: [...all.slice(0, at < 0 ? all.length : at), next],
                    };
                },
            },
        );
    }

    return (
        <article aria-label="You">
            <p>{String(message.content)}</p>
            {draft === null ? (
                <button onClick={() => setDraft(String(message.content))}>Edit</button>
            ) : (
                <form onSubmit={(event) => (event.preventDefault(), again(draft))}>
                    <input
                        aria-label="Edit message"
                        value={draft}
                        onChange={(e) => setDraft(e.target.value)}
                    />
                    <button>Save</button>
                </form>
            )}
            <button disabled={!parent} onClick={() => again(message.content)}>
                Retry
            </button>
            {options.length > 1 && (
                <Switcher thread={thread} branch={meta?.branch ?? ""} options={options} />
            )}
        </article>
    );
}

function Chat() {
    const [threadId, setThreadId] = useState<string | null>(location.hash.slice(1) || null);
    const [text, setText] = useState("");
    const thread = useStream<State>({
        apiUrl: location.origin,
        apiKey: undefined,
        assistantId: "agent",
        threadId,
        onThreadId: (id) => {
            history.replaceState(null, "", `#${id}`);
            setThreadId(id);
        },
        fetchStateHistory: { limit: 1000 }, // `true` is the last ten checkpoints: three turns
        reconnectOnMount: true,
        messagesKey: "messages",
    });

    function send() {
        const message = fresh(text);
        setText("");
        void thread.submit(
            { messages: [message] },
            {
                streamResumable: true,
                onDisconnect: "continue",
                optimisticValues: (before) => ({
                    ...before,
                    messages: [...(before.messages ?? []), message],
                }),
            },
        );
    }

    return (
        <main>
            {thread.messages.map((message, i) =>
                message.type === "human" ? (
                    <Human key={message.id ?? i} thread={thread} message={message} />
                ) : (
                    <article key={message.id ?? i} aria-label="Agent">
                        {String(message.content)}
                    </article>
                ),
            )}
            {thread.error ? <p role="alert">{String(thread.error)}</p> : null}
            <form onSubmit={(event) => (event.preventDefault(), send())}>
                <input
                    aria-label="Message"
                    value={text}
                    onChange={(event) => setText(event.target.value)}
                />
                <button>Send</button>
                {thread.isLoading && (
                    <button type="button" onClick={() => void thread.stop()}>
                        Stop
                    </button>
                )}
            </form>
        </main>
    );
}

createRoot(document.getElementById("root")!).render(<Chat />);
