// What can be done with a chat. The functions are made once and look at what is on the screen when
// they are called, so that whoever draws them need not be drawn anew with every piece of an answer.
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

/** What is being sent, or was refused. */
export interface Attempt {
    before: Message[];
    added: Message[];
    settings: { checkpoint?: unknown; command?: unknown };
    fork: Fork | null;
    /** Why the server has not taken it; null: it is being sent. */
    reason: string | null;
}

/** The run whose stream is read. */
export interface Following {
    /** null: the server has not taken it yet. */
    runId: string | null;
    error: unknown;
    /** To be stopped as soon as it has a name. */
    isUnwanted: boolean;
}

/** What is on the screen. */
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
    /** Answers by interrupt id, for all questions or for some. */
    resume(answers: Record<string, unknown>): Promise<void>;
    /** Goes on from the shown head: after a failure, a stop, a breakpoint. */
    continueRun(): Promise<void>;
    /** Tries again what failed: sends what was not taken, or goes on. */
    resend(): Promise<void>;
    /** Gives up what was not taken, and returns it. */
    discard(): Message[];
    stop(): Promise<void>;
    /** Shows the branch that ends in this checkpoint; null: the end of the chat. */
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
        // null: wherever the chat ends by then. (Of undefined the hook would make what it showed
        // last, which may be a branch that is being left.)
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
        // What was not taken before is said now, in one turn.
        if (unsent && unsent.added.length > 0)
            return begin(unsent.before, [...unsent.added, added], unsent.settings, unsent.fork);
        return begin(now.current.kept, [added], { checkpoint: shownCheckpoint() });
    };

    const continueRun = () => begin(now.current.kept, [], { checkpoint: shownCheckpoint() });

    /** Of a message that was just sent, the server alone knows where it came from. */
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
                // The browser's back button leads to what is shown now.
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
            toast(`The message can't be sent again: ${reasonOf(error)}`, { kind: "error" });
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
            toast(`The answer can't be stopped: ${reasonOf(error)}`, { kind: "error" });
        } finally {
            setStopping(false);
        }
    };

    const show = (checkpointId: string | null) => {
        const { options, headState, stream } = now.current;
        const { latest } = headState;
        // What a run at work has written is newer than all that was there before: the end of the
        // chat.
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
