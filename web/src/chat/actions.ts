// The actions of a chat. The functions are created once and read the current state when called, so
// that components with these props do not render again with every chunk.
import type { Message } from "@langchain/langgraph-sdk";
import type { RefObject } from "react";
import { reasonOf } from "@/api/client";
import { runEndOf, recordRunEnd } from "@/api/runEnds";
import { cancelRun, checkpointOf, getOrigins, type Origin } from "@/api/heddle";
import { newId } from "@/api/ids";
import { toast } from "@/ui/toast";
import { retryOf, type Fork } from "./forks";
import type { HeadState } from "./headState";

export type Content = Message["content"];

/** Messages that are being sent, or were rejected. */
export interface Attempt {
    before: Message[];
    added: Message[];
    settings: { checkpoint?: unknown; command?: unknown };
    fork: Fork | null;
    /** Why the server rejected it; null: it is being sent. */
    reason: string | null;
}

/** The run whose stream is read. */
export interface Following {
    /** null: the server has not created the run yet. */
    runId: string | null;
    error: unknown;
    /** Stop the run as soon as its id is known. */
    isUnwanted: boolean;
}

/** The current state of the chat. */
export interface Now {
    options: {
        threadId: string;
        assistantId: string;
        exists: boolean;
        head: string | null;
        activeRunId: string | null;
        onShow(head: string | null, replace?: boolean): void;
        ensureThread(content: Content): Promise<void>;
    };
    headState: HeadState;
    stream: {
        isLoading: boolean;
        submit(input: { messages: Message[] } | null, settings: never): Promise<void>;
        joinStream(runId: string): Promise<void>;
        stop(): Promise<void>;
    };
    unsent: Attempt | null;
    isStopping: boolean;
    kept: Message[];
    messages: Message[];
    submit(attempt: Attempt): Promise<void>;
}

export interface Actions {
    send(content: Content): Promise<void>;
    retry(messageId: string): Promise<void>;
    edit(messageId: string, content: Content): Promise<void>;
    /** Replies by interrupt id, for all interrupts or for some. */
    resume(answers: Record<string, unknown>): Promise<void>;
    /** Continues from the shown head: after a failure, a stop or a breakpoint. */
    continueRun(): Promise<void>;
    /** Retries after a failure: sends unsent messages, or continues the run. */
    resend(): Promise<void>;
    /** Drops the unsent messages and returns them. */
    discard(): Message[];
    stop(): Promise<void>;
    /** Shows the branch that ends in this checkpoint; null: the latest checkpoint. */
    show(checkpointId: string | null): void;
    reload(): Promise<void>;
}

interface AgentChat {
    now: RefObject<Now>;
    following: RefObject<Following | null>;
    left: RefObject<string | null>;
    setAttempt(attempt: null): void;
    setFork(fork: null): void;
    setStopping(isStopping: boolean): void;
}

export function createActions({
    now,
    following,
    left,
    setAttempt,
    setFork,
    setStopping,
}: AgentChat): Actions {
    const namespace = () =>
        now.current.headState.state?.checkpoint.checkpoint_ns ??
        `assistant:${now.current.options.assistantId}`;
    const shownCheckpoint = () => {
        const { options, headState } = now.current;
        if (options.head !== null) return checkpointOf(namespace(), options.head);
        const id = headState.at === null ? headState.state?.checkpoint.checkpoint_id : null;
        // null: the latest checkpoint. (For undefined the hook would use the checkpoint it showed
        // last, which may be on a branch that is being left.)
        return id ? checkpointOf(namespace(), id) : null;
    };
    const begin = (
        before: Message[],
        added: Message[],
        settings: Attempt["settings"],
        fork: Fork | null = null,
    ) => now.current.submit({ before, added, settings, fork, reason: null });

    const send = (content: Content) => {
        const added = { id: newId(), type: "human", content } as Message;
        const { unsent } = now.current;
        // Unsent messages go into the same turn.
        if (unsent && unsent.added.length > 0)
            return begin(unsent.before, [...unsent.added, added], unsent.settings, unsent.fork);
        return begin(now.current.kept, [added], { checkpoint: shownCheckpoint() });
    };

    const continueRun = () => begin(now.current.kept, [], { checkpoint: shownCheckpoint() });

    /** Only the server knows the origin of a message that was just sent. */
    const originsFor = async (messageId: string): Promise<ReadonlyMap<string, Origin>> => {
        const { options, headState } = now.current;
        if (headState.origins.has(messageId)) return headState.origins;
        const { messages } = await getOrigins(options.threadId, {
            assistantId: options.assistantId,
        });
        return new Map(messages.map((origin) => [origin.id, origin]));
    };

    const forkAt = async (messageId: string, content: Content | null) => {
        const { messages, options, headState, unsent } = now.current;
        if (unsent?.added.some((message) => message.id === messageId))
            return now.current.submit({
                ...unsent,
                added: withContent(unsent.added, messageId, content),
            });
        try {
            const again = retryOf(messages, messageId, content, await originsFor(messageId));
            if (!again) throw new Error("it is not stored yet");
            if (options.head === null && headState.latest) {
                // The browser's back button returns to the shown branch.
                left.current = headState.latest;
                options.onShow(headState.latest, true);
                options.onShow(null);
            }
            const { before, added, fork } = again;
            const checkpoint = fork.checkpointId
                ? checkpointOf(namespace(), fork.checkpointId)
                : shownCheckpoint();
            return await begin(before, added, { checkpoint }, fork);
        } catch (error) {
            toast(`Could not resend the message: ${reasonOf(error)}`, { kind: "error" });
        }
    };

    const stop = async () => {
        const { options, isStopping } = now.current;
        const id = following.current?.runId ?? options.activeRunId;
        if (isStopping) return;
        if (!id) {
            if (following.current) following.current.isUnwanted = true;
            return;
        }
        setStopping(true);
        try {
            const receipt = await cancelRun(options.threadId, id);
            if (receipt && !runEndOf(id))
                recordRunEnd({ run_id: id, status: "interrupted", receipt });
        } catch (error) {
            toast(`Could not stop the answer: ${reasonOf(error)}`, { kind: "error" });
        } finally {
            setStopping(false);
        }
    };

    const show = (checkpointId: string | null) => {
        const { options, headState, stream } = now.current;
        const { latest } = headState;
        // A running run writes the newest checkpoints: show the latest.
        const isNewer = latest === null || (checkpointId ?? "") > latest;
        const isEnd = stream.isLoading
            ? isNewer || (checkpointId === latest && checkpointId !== left.current)
            : checkpointId === latest;
        options.onShow(isEnd || !checkpointId ? null : checkpointId);
    };

    return {
        send,
        continueRun,
        stop,
        show,
        retry: (messageId) => forkAt(messageId, null),
        edit: forkAt,
        resume: (answers) =>
            begin(now.current.kept, [], {
                checkpoint: shownCheckpoint(),
                command: { resume: answers },
            }),
        resend: () => (now.current.unsent ? now.current.submit(now.current.unsent) : continueRun()),
        discard: () => {
            const added = now.current.unsent?.added ?? [];
            setAttempt(null);
            setFork(null);
            return added;
        },
        reload: async () => {
            await now.current.headState.reload();
        },
    };
}

function withContent(messages: Message[], id: string, content: Content | null): Message[] {
    if (content === null) return messages;
    return messages.map((message) =>
        message.id === id ? ({ ...message, content } as Message) : message,
    );
}
