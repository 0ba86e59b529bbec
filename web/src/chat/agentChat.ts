// One agent's chat in a thread: its messages on the shown branch, its state, and its actions. The
// official hook submits, streams, joins and stops; branches come from the server, which has the
// whole tree however long the thread is.
import type { Interrupt, Message, ThreadState } from "@langchain/langgraph-sdk";
import { useStream } from "@langchain/langgraph-sdk/react";
import { useEffect, useMemo, useRef, useState } from "react";
import { client, reasonOf, statusOf } from "@/api/client";
import { runEndOf } from "@/api/runEnds";
import type { Origin, State } from "@/api/heddle";
import { toast } from "@/ui/toast";
import {
    createActions,
    type Actions,
    type Attempt,
    type Content,
    type Following,
    type Now,
} from "./actions";
import { withFork, type Fork } from "./forks";
import { useActiveNodes } from "./nodes";
import { useHeadState, type HeadState } from "./headState";
import {
    failureOf,
    isBehind,
    isStopped,
    messagesOf,
    questionsOf,
    stoppedOf,
    unstoredOf,
    type Broken,
    type Ended,
    type Failure,
    type Stopped,
} from "./runOutcome";
import { useUnsentDraft } from "./unsent";

export type { Content } from "./actions";
export type { Failure, Stopped } from "./runOutcome";

/** The functions stay the same for the life of the chat. */
export interface AgentChat extends Actions {
    assistantId: string;
    /** On the shown branch, oldest first. */
    messages: Message[];
    originOf(messageId: string | undefined): Origin | undefined;
    /** The state at the shown head; null: no messages yet. */
    state: ThreadState<State> | null;
    /** The selected head; null: the latest checkpoint. */
    head: string | null;
    phase: "loading" | "idle" | "working" | "stopping";
    /** The stream writes to another branch than the shown one. */
    isOnOtherBranch: boolean;
    /** The id of the message that is being written. */
    writing: string | null;
    interrupts: Interrupt[];
    failure: Failure | null;
    stopped: Stopped | null;
    /** Messages that the server has not accepted. */
    unsent: ReadonlySet<string>;
    /** Turns that failed or were stopped since the page was opened, by the user's last message. */
    broken: ReadonlyMap<string, Broken>;
    /** Running nodes. */
    activeNodes: ReadonlySet<string>;
}

export interface AgentChatOptions {
    threadId: string;
    assistantId: string;
    exists: boolean;
    head: string | null;
    /** A pending or running run of this agent, started here or elsewhere. */
    activeRunId: string | null;
    /** Its newest run that has ended; null: none, or unknown yet. */
    ended: Ended | null;
    /** The graph is visible: report running nodes. */
    watchesNodes: boolean;
    /** `replace`: adds no entry to the browser's history. */
    onShow(head: string | null, replace?: boolean): void;
    /** Creates the thread if it does not exist. */
    ensureThread(content: Content): Promise<void>;
    onEnd(): void;
}

/** The result of the last run at a checkpoint, beyond the stored state. */
interface After extends Broken {
    at: string | null;
}

const KEEP = {
    streamResumable: true,
    onDisconnect: "continue",
    streamMode: ["values", "messages-tuple"],
} as const;
const none: ReadonlySet<string> = new Set();
const unbroken: ReadonlyMap<string, Broken> = new Map();

const newFollowing = (runId: string | null): Following => ({
    runId,
    error: null,
    isUnwanted: false,
});

const idOf = (state: ThreadState<State> | null) => state?.checkpoint.checkpoint_id ?? null;

/** The selected branch may have been pruned, here or elsewhere. */
function useMissingBranch(
    head: string | null,
    headState: HeadState,
    onShow: AgentChatOptions["onShow"],
) {
    const isMissing = head !== null && headState.at !== head && statusOf(headState.error) === 404;
    useEffect(() => {
        if (!isMissing) return;
        toast("That branch no longer exists. This is the latest one.");
        onShow(null, true);
    }, [isMissing, onShow]);
}

export function useAgentChat(options: AgentChatOptions): AgentChat {
    const { threadId, assistantId, exists, head, activeRunId, onShow } = options;
    const headState = useHeadState(threadId, assistantId, exists, head);
    const nodes = useActiveNodes(options.watchesNodes);
    const [attempt, setAttempt] = useState<Attempt | null>(null);
    const [after, setAfter] = useState<After | null>(null);
    const [broken, setBroken] = useState(unbroken);
    const [isStopping, setStopping] = useState(false);
    /** True from a failure until the resulting state is loaded. */
    const [isSettling, setSettling] = useState(false);
    const [fork, setFork] = useState<Fork | null>(null);
    const seen = useRef(new Set<string>()).current;
    const following = useRef<Following | null>(null);
    /** The latest checkpoint when a fork started: outdated while the fork's run is running. */
    const left = useRef<string | null>(null);
    const lastRead = useRef<ThreadState<State> | null>(null);
    const reloadHead = headState.reload;

    const thread = useMemo(
        () => ({
            data: headState.state ? [headState.state] : [],
            error: headState.error ?? undefined,
            isLoading: headState.isLoading,
            mutate: async () => {
                const state = (lastRead.current = await reloadHead());
                return state ? [state] : [];
            },
        }),
        [headState.state, headState.error, headState.isLoading, reloadHead],
    );

    const stream = useStream<State>({
        client,
        assistantId,
        threadId,
        thread,
        fetchStateHistory: true,
        throttle: true,
        onCreated: ({ run_id }) => {
            seen.add(run_id);
            if (!following.current) return;
            following.current.runId = run_id;
            if (following.current.isUnwanted) void actions.stop();
        },
        onTaskEvent: nodes.onTaskEvent,
        onError: (error) => {
            if (!following.current) return;
            following.current.error = error;
            if (following.current.runId) setSettling(true);
        },
    });

    const kept = messagesOf(headState.state);
    const isStreaming = stream.isLoading;
    const isRefused = attempt !== null && attempt.reason !== null;
    // The server accepted the message although its response was lost.
    const isTaken =
        isRefused && attempt.added.length > 0 && kept.some(({ id }) => id === attempt.added[0]!.id);
    const unsent = isRefused && !isTaken ? attempt : null;
    const isWorking = isStreaming || (attempt !== null && !isRefused);
    const lastLive = useRef<Message[]>(kept);
    if (isStreaming || isSettling) lastLive.current = stream.messages;
    const live = lastLive.current;
    const messages = shownMessages();

    function shownMessages(): Message[] {
        if (attempt && !isTaken && !isStreaming && !isSettling)
            return [...attempt.before, ...attempt.added];
        if (head !== null || !(isStreaming || isSettling)) return kept;
        return isBehind(live, kept) ? kept : live;
    }

    /** Follows a run to its end and reads the result. */
    const follow = async (next: Following, begin: () => Promise<void>) => {
        await begin();
        if (following.current !== next) return; // another run replaced it
        following.current = null;
        const { runId, error } = next;
        nodes.clear();
        options.onEnd();
        if (error !== null && runId === null) {
            setAttempt((before) => before && { ...before, reason: reasonOf(error) });
            return;
        }
        const state = error === null ? lastRead.current : await reloadHead();
        const partial = unstoredOf(lastLive.current, messagesOf(state));
        const receipt = runEndOf(runId)?.receipt ?? null;
        const at = idOf(state);
        // A stopped answer that is stored shows its own notice, and there is nothing to continue.
        const last = messagesOf(state).at(-1);
        const isStored = last !== undefined && isStopped(last);
        const end: Broken = {
            failure: error !== null ? { reason: reasonOf(error), kind: "run", partial } : null,
            stopped: error === null && receipt && !isStored ? { receipt, partial } : null,
        };
        if (end.failure || end.stopped) {
            setAfter({ at, ...end });
            const lastHuman = messagesOf(state).findLast((message) => message.type === "human");
            if (lastHuman?.id) setBroken((before) => new Map(before).set(lastHuman.id!, end));
        }
        left.current = null;
        setFork(null);
        setAttempt(null);
        setSettling(false);
    };

    const submit = async (next: Attempt) => {
        const { added, before } = next;
        const run = (following.current = newFollowing(null));
        setAttempt({ ...next, reason: null });
        setFork(next.fork);
        setAfter(null);
        try {
            if (added.length > 0) await now.current.options.ensureThread(added[0]!.content);
        } catch (error) {
            following.current = null;
            setAttempt({ ...next, reason: reasonOf(error) });
            return;
        }
        const { stream, options } = now.current;
        if (options.head !== null) options.onShow(null);
        const settings = {
            ...KEEP,
            ...next.settings,
            // A replacement message does not wait for the answer to the replaced one.
            multitaskStrategy: stream.isLoading ? "interrupt" : undefined,
            optimisticValues: (state: State) => ({ ...state, messages: [...before, ...added] }),
        };
        await follow(run, () =>
            stream.submit(added.length > 0 ? { messages: added } : null, settings as never),
        );
    };

    const now = useRef<Now>(null!);
    now.current = { options, headState, stream, unsent, isStopping, kept, messages, submit };
    const actions = useMemo(
        () => createActions({ now, following, left, setAttempt, setFork, setStopping }),
        [],
    );

    // Joins a run that was started elsewhere, or was running when the page loaded.
    const canJoin = !isWorking && !headState.isLoading && exists;
    const followRef = useRef(follow);
    followRef.current = follow;
    useEffect(() => {
        if (!activeRunId || !canJoin || seen.has(activeRunId)) return;
        seen.add(activeRunId);
        setAfter(null);
        const run = (following.current = newFollowing(activeRunId));
        void followRef.current(run, () => now.current.stream.joinStream(activeRunId));
    }, [activeRunId, canJoin, seen]);

    useMissingBranch(head, headState, onShow);
    useUnsentDraft(now);
    // Leaving the conversation closes the stream; the run continues.
    useEffect(() => () => void now.current.stream.stop(), []);

    const origins = useMemo(() => withFork(headState.origins, fork), [headState.origins, fork]);
    const originOf = useMemo(
        () => (id: string | undefined) => (id === undefined ? undefined : origins.get(id)),
        [origins],
    );
    const isOnOtherBranch = isStreaming && head !== null;
    const isAtRest = !isWorking && !isSettling;
    const mark = after && after.at === idOf(headState.state) ? after : null;

    function failure(): Failure | null {
        if (unsent) return { reason: unsent.reason!, kind: "send", partial: null };
        return isAtRest ? (mark?.failure ?? failureOf(headState.error, headState.state)) : null;
    }

    function stopped(): Stopped | null {
        if (!isAtRest) return null;
        const isKnown = !headState.isLoading && activeRunId === null && !unsent;
        return mark?.stopped ?? (isKnown ? stoppedOf(headState.state, options.ended) : null);
    }

    function phase(): AgentChat["phase"] {
        if (isStopping) return "stopping";
        if (isWorking) return "working";
        return headState.isLoading && !headState.state ? "loading" : "idle";
    }

    return {
        ...actions,
        assistantId,
        messages,
        originOf,
        state: headState.state,
        head,
        phase: phase(),
        isOnOtherBranch,
        writing: isStreaming && !isOnOtherBranch ? (messages.at(-1)?.id ?? null) : null,
        interrupts: isWorking ? [] : questionsOf(headState.state),
        failure: failure(),
        stopped: stopped(),
        broken,
        unsent: unsent ? new Set(unsent.added.map((message) => message.id ?? "")) : none,
        activeNodes: nodes.active,
    };
}
