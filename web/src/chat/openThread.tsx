// The open thread with all of its agents: one AgentChat each, their messages merged by time, and
// the selected agent.
import {
    createContext,
    memo,
    useCallback,
    useContext,
    useEffect,
    useLayoutEffect,
    useMemo,
    useRef,
    useState,
    type ReactNode,
} from "react";
import { useAssistants } from "@/api/assistants";
import { client } from "@/api/client";
import { createStore, useStore, type Store } from "@/api/store";
import { getRoute, go } from "@/app/route";
import { noteThreadChange } from "@/threads/changes";
import { preferred, prefer, useThreadAgents } from "./agents";
import { merge, type Entry } from "./entries";
import { headOf, withHead } from "./heads";
import { useAgentChat, type Content, type AgentChat, type AgentChatOptions } from "./agentChat";
import { useRuns } from "./runs";
import { titleOf } from "./text";

export interface OpenThread {
    threadId: string;
    /** False until the first message of a new conversation is sent. */
    exists: boolean;
    /** The thread does not exist, or the user may not access it. */
    isMissing: boolean;
    /** The agents of the thread are not loaded yet. */
    isLoading: boolean;
    /** Why the agents could not be loaded; null: no error. */
    error: unknown;
    /** Reloads everything. */
    reload(): void;
    /** The agents of the thread in order of first use, including the selected agent. */
    chats: AgentChat[];
    active: AgentChat | null;
    activeId: string | null;
    selectAgent(assistantId: string): void;
    /** Sends to an agent, by default the selected one. */
    send(content: Content, assistantId?: string): Promise<void>;
    entries: Entry[];
    /** The statuses of recent runs, by run id. */
    statuses: ReadonlyMap<string, string>;
    isWorking: boolean;
    /** The graph panel subscribes to running nodes. */
    watchNodes(watches: boolean): void;
}

export type { Entry } from "./entries";

const OpenThreadContext = createContext<OpenThread | null>(null);

export function useOpenThread(): OpenThread {
    const thread = useContext(OpenThreadContext);
    if (!thread) throw new Error("useOpenThread() needs a OpenThreadProvider around it");
    return thread;
}

/**
 * The parts of a thread that seldom change: rows that read only these do not render with every
 * chunk.
 */
export type ThreadSummary = Pick<OpenThread, "threadId" | "isMissing" | "statuses">;

const ThreadSummaryContext = createContext<ThreadSummary>({
    threadId: "",
    isMissing: false,
    statuses: new Map(),
});

export const useThreadSummary = () => useContext(ThreadSummaryContext);

type AgentChats = ReadonlyMap<string, AgentChat>;

interface HostProps extends Omit<AgentChatOptions, "onShow"> {
    chats: Store<AgentChats>;
    /** Counts the change events of the thread. */
    changes: number;
    onShow(assistantId: string, head: string | null, replace?: boolean): void;
}

/**
 * Each chat needs its own hook, hence a component. It renders nothing and stores the chat in the
 * thread.
 */
const AgentChatHost = memo(function AgentChatHost(props: HostProps) {
    const { chats, assistantId, onShow } = props;
    const show = useCallback(
        (head: string | null, replace?: boolean) => onShow(assistantId, head, replace),
        [onShow, assistantId],
    );
    const chat = useAgentChat({ ...props, onShow: show });

    useLayoutEffect(() => {
        chats.update((before) => new Map(before).set(assistantId, chat));
    });
    useLayoutEffect(
        () => () =>
            chats.update((before) => {
                const rest = new Map(before);
                rest.delete(assistantId);
                return rest;
            }),
        [chats, assistantId],
    );

    // A run elsewhere has ended or changed the state: reload, unless a stream is active.
    const { changes } = props;
    const current = useRef(chat);
    current.current = chat;
    useEffect(() => {
        if (changes > 0 && current.current.phase === "idle") void current.current.reload();
    }, [changes]);
    return null;
});

interface ProviderProps {
    threadId: string;
    isNew: boolean;
    /** The selected branch of a selected agent, from the URL. */
    at: string | null;
    agent: string | null;
    children: ReactNode;
}

export function OpenThreadProvider({ threadId, isNew, at, agent, children }: ProviderProps) {
    const { list } = useAssistants();
    const [exists, setExists] = useState(!isNew);
    const [changes, setChanges] = useState(0);
    const named = agent?.split(",").at(-1) ?? null;
    const [chosen, setChosen] = useState<string | null>(named);
    useEffect(() => {
        if (named) setChosen(named); // the URL names another agent
    }, [named]);
    const [watchesNodes, watchNodes] = useState(false);
    const [chats] = useState(() => createStore<AgentChats>(new Map()));
    const handles = useStore(chats);
    const reload = useCallback(() => setChanges((count) => count + 1), []);
    const runs = useRuns(threadId, exists, reload);
    const { agents, isMissing, error } = useThreadAgents(threadId, exists, changes);

    const selectedId = chosen ?? agents?.last ?? (agents ? preferred(list) : null);
    const ids = useMemo(() => {
        const running = agents ? runs.active.map((run) => run.assistant_id) : [];
        return [
            ...new Set([...(agents?.ids ?? []), ...running, ...(selectedId ? [selectedId] : [])]),
        ];
    }, [agents, runs.active, selectedId]);

    const onShow = useCallback(
        (assistantId: string, head: string | null, replace?: boolean) => {
            const route = getRoute();
            if (route.view === "chat")
                go({ ...route, threadId, ...withHead(route, assistantId, head) }, replace);
        },
        [threadId],
    );
    const ensureThread = useCallback(
        async (content: Content) => {
            if (exists) return;
            await client.threads.create({
                threadId,
                ifExists: "do_nothing",
                metadata: { title: titleOf(content) },
            });
            setExists(true);
            noteThreadChange();
            if (isHere.current) go({ view: "chat", threadId, at: null, agent: null }, true);
        },
        [exists, threadId],
    );
    // Do not navigate if the user left while the thread was being created.
    const isHere = useRef(true);
    useEffect(() => {
        isHere.current = true;
        return () => {
            isHere.current = false;
        };
    }, []);
    const selectAgent = useCallback((assistantId: string) => {
        setChosen(assistantId);
        prefer(assistantId);
    }, []);

    // A message to an agent without a chat waits until the chat is mounted.
    const waiting = useRef<{ content: Content; assistantId: string } | null>(null);
    const send = useCallback(
        async (content: Content, assistantId?: string) => {
            const to = assistantId ?? selectedId;
            if (!to) return;
            if (assistantId) selectAgent(assistantId);
            const chat = chats.get().get(to);
            if (chat) return chat.send(content);
            waiting.current = { content, assistantId: to };
        },
        [chats, selectedId, selectAgent],
    );
    useEffect(() => {
        const chat = waiting.current ? handles.get(waiting.current.assistantId) : undefined;
        if (!chat || !waiting.current) return;
        const { content } = waiting.current;
        waiting.current = null;
        void chat.send(content);
    }, [handles]);

    const shown = useMemo(() => ids.flatMap((id) => handles.get(id) ?? []), [ids, handles]);
    const entries = useMemo(() => merge(shown), [shown]);
    const { statuses } = runs;
    const thread: OpenThread = {
        threadId,
        exists,
        isMissing,
        isLoading: agents === null && !isMissing,
        error,
        reload,
        chats: shown,
        active: (selectedId && handles.get(selectedId)) || null,
        activeId: selectedId,
        selectAgent,
        send,
        entries,
        statuses,
        isWorking: shown.some((chat) => chat.phase === "working" || chat.phase === "stopping"),
        watchNodes,
    };
    const summary = useMemo(
        () => ({ threadId, isMissing, statuses }),
        [threadId, isMissing, statuses],
    );
    return (
        <OpenThreadContext value={thread}>
            {ids.map((id) => (
                <AgentChatHost
                    key={id}
                    chats={chats}
                    threadId={threadId}
                    assistantId={id}
                    exists={exists}
                    head={headOf({ at, agent }, id)}
                    activeRunId={runs.active.find((run) => run.assistant_id === id)?.run_id ?? null}
                    ended={runs.ended.get(id) ?? null}
                    watchesNodes={watchesNodes}
                    changes={changes}
                    onShow={onShow}
                    ensureThread={ensureThread}
                    onEnd={noteThreadChange}
                />
            ))}
            <ThreadSummaryContext value={summary}>{children}</ThreadSummaryContext>
        </OpenThreadContext>
    );
}
