// A thread with all of its agents: one Line for each, what they said merged by time, and who is
// spoken to.
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
import { useLine, type Content, type Line, type LineOptions } from "./line";
import { useRuns } from "./runs";
import { titleOf } from "./text";

export interface Room {
    threadId: string;
    /** False until the first message of a new conversation is sent. */
    exists: boolean;
    /** The server knows no such thread, or it is somebody else's. */
    isMissing: boolean;
    /** Who has spoken here is not known yet. */
    isLoading: boolean;
    /** Why who has spoken here can't be told; null: it can. */
    error: unknown;
    /** Reads everything again. */
    reload(): void;
    /**
     * Agents with a line, in the order in which they came; the one that is spoken to is among them.
     */
    lines: Line[];
    active: Line | null;
    activeId: string | null;
    speakTo(assistantId: string): void;
    /** Sends to an agent, by default the one that is spoken to. */
    send(content: Content, assistantId?: string): Promise<void>;
    entries: Entry[];
    /** How recent runs ended, by their id. */
    statuses: ReadonlyMap<string, string>;
    isWorking: boolean;
    /** Whoever draws the graph asks to be told of the nodes at work. */
    watchNodes(watches: boolean): void;
}

export type { Entry } from "./entries";

const RoomContext = createContext<Room | null>(null);

export function useRoom(): Room {
    const room = useContext(RoomContext);
    if (!room) throw new Error("useRoom() needs a RoomProvider around it");
    return room;
}

/**
 * What seldom changes of a room: rows that read only this do not render with every piece of an
 * answer.
 */
export type Standing = Pick<Room, "threadId" | "isMissing" | "statuses">;

const StandingContext = createContext<Standing>({
    threadId: "",
    isMissing: false,
    statuses: new Map(),
});

export const useStanding = () => useContext(StandingContext);

type Lines = ReadonlyMap<string, Line>;

interface HostProps extends Omit<LineOptions, "onShow"> {
    lines: Store<Lines>;
    /** Counts what the server told of the thread. */
    changes: number;
    onShow(assistantId: string, head: string | null, replace?: boolean): void;
}

/** A line needs a hook of its own, so it needs a component: it shows nothing and tells the room. */
const LineHost = memo(function LineHost(props: HostProps) {
    const { lines, assistantId, onShow } = props;
    const show = useCallback(
        (head: string | null, replace?: boolean) => onShow(assistantId, head, replace),
        [onShow, assistantId],
    );
    const line = useLine({ ...props, onShow: show });

    useLayoutEffect(() => {
        lines.update((before) => new Map(before).set(assistantId, line));
    });
    useLayoutEffect(
        () => () =>
            lines.update((before) => {
                const rest = new Map(before);
                rest.delete(assistantId);
                return rest;
            }),
        [lines, assistantId],
    );

    // Somebody else's run has ended, or changed the state: look again, unless a stream tells.
    const { changes } = props;
    const current = useRef(line);
    current.current = line;
    useEffect(() => {
        if (changes > 0 && current.current.phase === "idle") void current.current.reload();
    }, [changes]);
    return null;
});

interface ProviderProps {
    threadId: string;
    isNew: boolean;
    /** A chosen branch of a chosen agent, from the address. */
    at: string | null;
    agent: string | null;
    children: ReactNode;
}

export function RoomProvider({ threadId, isNew, at, agent, children }: ProviderProps) {
    const { list } = useAssistants();
    const [exists, setExists] = useState(!isNew);
    const [changes, setChanges] = useState(0);
    const named = agent?.split(",").at(-1) ?? null;
    const [chosen, setChosen] = useState<string | null>(named);
    useEffect(() => {
        if (named) setChosen(named); // the address names another one
    }, [named]);
    const [watchesNodes, watchNodes] = useState(false);
    const [lines] = useState(() => createStore<Lines>(new Map()));
    const handles = useStore(lines);
    const reload = useCallback(() => setChanges((count) => count + 1), []);
    const runs = useRuns(threadId, exists, reload);
    const { agents, isMissing, error } = useThreadAgents(threadId, exists, changes);

    const spokenTo = chosen ?? agents?.last ?? (agents ? preferred(list) : null);
    const ids = useMemo(() => {
        const atWork = agents ? runs.active.map((run) => run.assistant_id) : [];
        return [...new Set([...(agents?.ids ?? []), ...atWork, ...(spokenTo ? [spokenTo] : [])])];
    }, [agents, runs.active, spokenTo]);

    const onShow = useCallback(
        (assistantId: string, head: string | null, replace?: boolean) => {
            const route = getRoute();
            if (route.view === "talk")
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
            if (isHere.current) go({ view: "talk", threadId, at: null, agent: null }, true);
        },
        [exists, threadId],
    );
    // Whoever went elsewhere while the thread was made stays there.
    const isHere = useRef(true);
    useEffect(() => {
        isHere.current = true;
        return () => {
            isHere.current = false;
        };
    }, []);
    const speakTo = useCallback((assistantId: string) => {
        setChosen(assistantId);
        prefer(assistantId);
    }, []);

    // A message to an agent that has no line yet waits until there is one, a moment later.
    const waiting = useRef<{ content: Content; assistantId: string } | null>(null);
    const send = useCallback(
        async (content: Content, assistantId?: string) => {
            const to = assistantId ?? spokenTo;
            if (!to) return;
            if (assistantId) speakTo(assistantId);
            const line = lines.get().get(to);
            if (line) return line.send(content);
            waiting.current = { content, assistantId: to };
        },
        [lines, spokenTo, speakTo],
    );
    useEffect(() => {
        const line = waiting.current ? handles.get(waiting.current.assistantId) : undefined;
        if (!line || !waiting.current) return;
        const { content } = waiting.current;
        waiting.current = null;
        void line.send(content);
    }, [handles]);

    const shown = useMemo(() => ids.flatMap((id) => handles.get(id) ?? []), [ids, handles]);
    const entries = useMemo(() => merge(shown), [shown]);
    const { statuses } = runs;
    const room: Room = {
        threadId,
        exists,
        isMissing,
        isLoading: agents === null && !isMissing,
        error,
        reload,
        lines: shown,
        active: (spokenTo && handles.get(spokenTo)) || null,
        activeId: spokenTo,
        speakTo,
        send,
        entries,
        statuses,
        isWorking: shown.some((line) => line.phase === "working" || line.phase === "stopping"),
        watchNodes,
    };
    const standing = useMemo(
        () => ({ threadId, isMissing, statuses }),
        [threadId, isMissing, statuses],
    );
    return (
        <RoomContext value={room}>
            {ids.map((id) => (
                <LineHost
                    key={id}
                    lines={lines}
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
            <StandingContext value={standing}>{children}</StandingContext>
        </RoomContext>
    );
}
