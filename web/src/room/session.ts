// The open room: loads it, follows the events of its thread, and sends what the user does.
import { client, clientThatSays, reasonOf, statusOf } from "@/api/client";
import { untilReached } from "@/api/connection";
import { newId } from "@/api/ids";
import { untilSignedIn } from "@/api/session";
import { createStore, type Store } from "@/api/store";
import { noteThreadChange } from "@/threads/changes";
import {
    getCascades,
    getMessage,
    getMessages,
    getRoom,
    markRead,
    postMessage,
    reportTyping,
} from "./api";
import {
    applyEvent,
    emptyRoom,
    expireTyping,
    isWriting,
    putCascade,
    putMessage,
    putMessages,
    type RoomEvent,
    type RoomState,
} from "./model";
import { firstUnread } from "./rows";
import type { Cascade, ChatMessage, Content, Room } from "./types";

/** A message that the server has not accepted yet. */
export interface Outgoing {
    id: string;
    content: Content;
    replyTo: string | null;
    /** The value of an answer to a question, where it is not the text. */
    resume?: unknown;
    /** Why it was not sent; null: it is being sent. */
    problem: string | null;
}

export interface OpenRoom {
    room: Room | null;
    state: RoomState;
    /** Why it could not be loaded; null: loaded, or loading. */
    error: unknown;
    /** Older messages exist than are loaded. */
    hasEarlier: boolean;
    isLoadingEarlier: boolean;
    outbox: readonly Outgoing[];
    /** The first message that was unread when the room was opened. */
    firstNew: string | null;
}

export interface RoomSession {
    threadId: string;
    store: Store<OpenRoom>;
    /** Follows the room until the returned function is called. */
    start(): () => void;
    send(content: Content, replyTo: string | null): void;
    /** Answers a question: the text for readers, and the value for the agent. */
    answer(messageId: string, text: string, value: unknown): void;
    resend(id: string): void;
    /** Takes an unsent message back. */
    discard(id: string): Outgoing | null;
    loadEarlier(): Promise<void>;
    /** Loads messages until this one is shown; false: it does not exist. */
    reach(messageId: string): Promise<boolean>;
    /** Everything up to the newest message was read. */
    read(): void;
    typed(): void;
    putRoom(room: Room): void;
    putMessage(message: ChatMessage): void;
    putCascade(cascade: Cascade | null): void;
}

const PAGE = 50;
const BIG_PAGE = 500;
const FLUSH_MS = 30;
const TYPED_MS = 1500;
const EXPIRE_MS = 1000;
const MOST_JOINED = 2; // a browser has six connections to a server

const closed: OpenRoom = {
    room: null,
    state: emptyRoom,
    error: null,
    hasEarlier: false,
    isLoadingEarlier: false,
    outbox: [],
    firstNew: null,
};

interface Stream {
    threadId: string;
    signal: AbortSignal;
    onOpen(): void;
    onEvent(event: RoomEvent): void;
    onLost(error: unknown): void;
}

interface Position {
    /** The number of the last event. */
    lastId: string | undefined;
}

/** "room" is a mode of this server that the official client does not know. */
const MODES = ["room", "run_modes"] as unknown as "run_modes"[];

/** Follows the thread until the signal; a broken stream resumes after the last event. */
async function follow(stream: Stream, position: Position): Promise<void> {
    const { threadId, signal } = stream;
    const ear = clientThatSays(stream.onOpen);
    while (!signal.aborted) {
        try {
            const events = ear.threads.joinStream(threadId, {
                streamMode: MODES,
                lastEventId: position.lastId,
                signal,
            });
            for await (const event of events) {
                if (event.id) position.lastId = event.id;
                stream.onEvent(event);
            }
        } catch (error) {
            const status = statusOf(error);
            if (signal.aborted) return;
            if (status === 403 || status === 404 || status === 422) return stream.onLost(error);
            if (status === 401) await untilSignedIn(signal);
            if (status === 503) position.lastId = undefined; // the events are gone: load again
        }
        await untilReached(signal).catch(() => undefined);
    }
}

export function createSession(threadId: string): RoomSession {
    const store = createStore<OpenRoom>(closed);
    const joined = new Set<string>(); // runs that are read from their own stream
    let waiting: RoomEvent[] = [];
    let timer: ReturnType<typeof setTimeout> | undefined;
    let readUpTo = 0;
    let typedAt = 0;

    const change = (more: Partial<OpenRoom>) => store.update((before) => ({ ...before, ...more }));
    const changeState = (make: (state: RoomState) => RoomState) =>
        store.update((before) => {
            const state = make(before.state);
            if (state === before.state) return before;
            const known = new Set(state.messages.map((message) => message.id));
            const outbox = before.outbox.filter((one) => !known.has(one.id));
            return { ...before, state, outbox };
        });

    /* ---- events ---------------------------------------------------------- */

    const flush = () => {
        clearTimeout(timer);
        timer = undefined;
        const events = waiting;
        waiting = [];
        changeState((state) =>
            events.reduce((before, event) => applyEvent(before, event, Date.now()), state),
        );
        if (events.some(({ event }) => event === "room/message")) noteThreadChange();
    };
    const take = (event: RoomEvent) => {
        waiting.push(event);
        timer ??= setTimeout(flush, FLUSH_MS);
    };
    const onEvent = (event: RoomEvent) => {
        if (event.event === "messages" && Array.isArray(event.data)) {
            const [, place] = event.data as [unknown, { run_id?: string } | undefined];
            if (joined.has(place?.run_id ?? "")) return;
        }
        take(event);
    };
    /** The pieces that a run has sent before the page listened. */
    const join = async (runId: string, signal: AbortSignal) => {
        joined.add(runId);
        try {
            const events = client.runs.joinStream(threadId, runId, {
                streamMode: ["messages-tuple"],
                lastEventId: "-1",
                signal,
            });
            for await (const event of events) take(event);
        } catch {
            // Its answer arrives as a message.
        } finally {
            joined.delete(runId);
        }
    };
    const joinRunning = (signal: AbortSignal) => {
        for (const live of store.get().state.runs.values()) {
            const isMissed = live.status === "running" && live.pieces.length === 0;
            if (isMissed && !joined.has(live.runId) && joined.size < MOST_JOINED)
                void join(live.runId, signal);
        }
    };

    /* ---- loading --------------------------------------------------------- */

    const load = async (signal: AbortSignal) => {
        try {
            const [room, messages, cascades] = await Promise.all([
                getRoom(threadId, signal),
                getMessages(threadId, { limit: PAGE }, signal),
                getCascades(threadId, signal),
            ]);
            const isFirst = store.get().room === null;
            changeState((state) => cascades.reduce(putCascade, putMessages(state, messages)));
            const { state } = store.get();
            change({ room, error: null });
            if (isFirst) {
                readUpTo = room.unread > 0 ? 0 : (state.messages.at(-1)?.seq ?? 0);
                const firstNew = firstUnread(state.messages, room.me, room.unread);
                change({ hasEarlier: messages.length === PAGE, firstNew });
            }
        } catch (error) {
            if (!signal.aborted) change({ error });
        }
    };
    const start = () => {
        let controller: AbortController | null = null;
        const position: Position = { lastId: undefined };
        const listen = () => {
            controller?.abort();
            controller = null;
            if (document.visibilityState !== "visible") return;
            const { signal } = (controller = new AbortController());
            const onOpen = () => {
                const isFresh = position.lastId === undefined;
                void load(signal).then(() => isFresh && joinRunning(signal));
            };
            const onLost = (error: unknown) => change({ error });
            void follow({ threadId, signal, onOpen, onEvent, onLost }, position);
        };
        listen();
        document.addEventListener("visibilitychange", listen);
        const clock = setInterval(
            () => changeState((state) => expireTyping(state, Date.now())),
            EXPIRE_MS,
        );
        return () => {
            controller?.abort();
            clearInterval(clock);
            clearTimeout(timer);
            timer = undefined;
            document.removeEventListener("visibilitychange", listen);
        };
    };
    const loadEarlier = async (limit = PAGE) => {
        const { state, isLoadingEarlier } = store.get();
        const before = state.messages[0]?.seq;
        if (before === undefined || isLoadingEarlier) return;
        change({ isLoadingEarlier: true });
        try {
            const messages = await getMessages(threadId, { before, limit });
            changeState((now) => putMessages(now, messages));
            change({ hasEarlier: messages.length === limit });
        } finally {
            change({ isLoadingEarlier: false });
        }
    };
    const reach = async (messageId: string) => {
        const has = () => store.get().state.messages.some((one) => one.id === messageId);
        if (has()) return true;
        const { seq } = await getMessage(threadId, messageId);
        while (!has() && store.get().hasEarlier && (store.get().state.messages[0]?.seq ?? 0) > seq)
            await loadEarlier(BIG_PAGE);
        return has();
    };

    /* ---- sending --------------------------------------------------------- */

    const putOutgoing = (id: string, problem: string | null) =>
        store.update((before) => ({
            ...before,
            outbox: before.outbox.map((one) => (one.id === id ? { ...one, problem } : one)),
        }));
    const post = async ({ id, content, replyTo, resume }: Outgoing) => {
        putOutgoing(id, null);
        try {
            const { message } = await postMessage(threadId, {
                id,
                content,
                ...(replyTo ? { reply_to: replyTo } : {}),
                ...(resume === undefined ? {} : { metadata: { resume } }),
            });
            changeState((state) => putMessage(state, message));
            noteThreadChange();
        } catch (error) {
            putOutgoing(id, reasonOf(error));
        }
    };
    const send = (content: Content, replyTo: string | null, resume?: unknown) => {
        const message = { id: newId(), content, replyTo, resume, problem: null };
        store.update((before) => ({
            ...before,
            outbox: [...before.outbox, message],
            firstNew: null,
        }));
        typedAt = 0;
        void post(message);
    };
    const find = (id: string) => store.get().outbox.find((one) => one.id === id) ?? null;
    const discard = (id: string) => {
        const found = find(id);
        change({ outbox: store.get().outbox.filter((one) => one.id !== id) });
        return found;
    };

    return {
        threadId,
        store,
        start,
        send: (content, replyTo) => send(content, replyTo),
        answer: (messageId, text, value) =>
            send(text, messageId, value === text ? undefined : value),
        resend: (id) => {
            const found = find(id);
            if (found) void post(found);
        },
        discard,
        loadEarlier: () => loadEarlier().catch(() => undefined),
        reach,
        read: () => {
            const seq = store.get().state.messages.at(-1)?.seq ?? 0;
            if (seq <= readUpTo) return;
            const before = readUpTo;
            readUpTo = seq;
            markRead(threadId, seq).then(noteThreadChange, () => {
                readUpTo = before;
            });
        },
        typed: () => {
            if (Date.now() - typedAt < TYPED_MS) return;
            typedAt = Date.now();
            reportTyping(threadId).catch(() => undefined);
        },
        putRoom: (room) => change({ room }),
        putMessage: (message) => changeState((state) => putMessage(state, message)),
        putCascade: (cascade) => cascade && changeState((state) => putCascade(state, cascade)),
    };
}

/** The runs that can be stopped. */
export const runningOf = (state: RoomState) => [...state.runs.values()].filter(isWriting);
