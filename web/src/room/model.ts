// The state of an open room: chat messages, the runs that write, cascades and people, from pages of
// messages and from events. Pure.
import { partsOf } from "@/chat/parts";
import type { Cascade, ChatMessage, Content, MessageRun, RoomRun, Sender } from "./types";

/** A message of an agent that its run has streamed so far. */
export interface Piece {
    id: string;
    text: string;
    /** The tools that it calls. */
    tools: string[];
}

/** A run whose answer is not a message yet. */
export interface Live {
    runId: string;
    assistantId: string;
    trigger: string | null;
    answer: string | null;
    status: string;
    attempt: number;
    pieces: readonly Piece[];
}

export interface Typist {
    person: Sender;
    /** In milliseconds. */
    until: number;
}

export interface RoomState {
    /** By seq. */
    messages: readonly ChatMessage[];
    runs: ReadonlyMap<string, Live>;
    cascades: ReadonlyMap<string, Cascade>;
    /** How far each person has read, by id. */
    reads: ReadonlyMap<string, { reader: Sender; seq: number }>;
    typing: ReadonlyMap<string, Typist>;
    present: readonly Sender[];
}

export interface RoomEvent {
    event: string;
    data: unknown;
}

export const emptyRoom: RoomState = {
    messages: [],
    runs: new Map(),
    cascades: new Map(),
    reads: new Map(),
    typing: new Map(),
    present: [],
};

const TYPING_MS = 4000;

const isActiveStatus = (status: string | null) => status === "pending" || status === "running";

export const isWriting = (live: Live) => isActiveStatus(live.status);

/* ---- messages ------------------------------------------------------------ */

/** An event may be older than a loaded page. */
function isNewer(next: ChatMessage, before: ChatMessage): boolean {
    return next.version > before.version || next.updated_at >= before.updated_at;
}

function placeOf(messages: readonly ChatMessage[], seq: number): number {
    let at = messages.length;
    while (at > 0 && messages[at - 1]!.seq > seq) at--;
    return at;
}

function withMessage(
    messages: readonly ChatMessage[],
    message: ChatMessage,
): readonly ChatMessage[] {
    const at = messages.findIndex((one) => one.id === message.id);
    if (at >= 0 && messages[at]!.seq === message.seq) {
        return isNewer(message, messages[at]!) ? messages.with(at, message) : messages;
    }
    const others = messages.filter((one) => one.id !== message.id);
    return others.toSpliced(placeOf(others, message.seq), 0, message);
}

function newRun(run: MessageRun, trigger: string | null): Live {
    return {
        runId: run.run_id,
        assistantId: run.assistant_id,
        trigger,
        answer: run.answer,
        status: run.status ?? "",
        attempt: 1,
        pieces: [],
    };
}

function withRun(runs: RoomState["runs"], run: MessageRun, trigger: string | null) {
    const before = runs.get(run.run_id);
    if (!before && !isActiveStatus(run.status)) return runs;
    const next = { ...(before ?? newRun(run, trigger)), status: run.status ?? "" };
    next.answer ??= run.answer;
    next.trigger ??= trigger;
    return new Map(runs).set(run.run_id, next);
}

function without<K, V>(map: ReadonlyMap<K, V>, key: K): ReadonlyMap<K, V> {
    if (!map.has(key)) return map;
    const rest = new Map(map);
    rest.delete(key);
    return rest;
}

export function putMessage(state: RoomState, message: ChatMessage): RoomState {
    let { runs } = state;
    if (message.run_id) runs = without(runs, message.run_id);
    for (const run of message.runs) runs = withRun(runs, run, message.id);
    // The answer of an ended run may be here already.
    for (const run of message.runs) {
        if (isActiveStatus(run.status)) continue;
        if (state.messages.some((one) => one.run_id === run.run_id))
            runs = without(runs, run.run_id);
    }
    return {
        ...state,
        messages: withMessage(state.messages, message),
        runs,
        typing: without(state.typing, message.sender.id),
    };
}

export function putMessages(state: RoomState, messages: readonly ChatMessage[]): RoomState {
    return messages.reduce(putMessage, state);
}

/* ---- runs ---------------------------------------------------------------- */

function putRun(state: RoomState, run: RoomRun): RoomState {
    const messages = state.messages.map((message) => {
        if (message.id !== run.trigger) return message;
        const { trigger: _trigger, ...made } = run;
        const rest = message.runs.filter((one) => one.run_id !== run.run_id);
        return { ...message, runs: [...rest, made] };
    });
    const isAnswered = state.messages.some((one) => one.run_id === run.run_id);
    const runs =
        isAnswered && !isActiveStatus(run.status)
            ? without(state.runs, run.run_id)
            : withRun(state.runs, run, run.trigger);
    return { ...state, messages, runs };
}

function changeRun(
    state: RoomState,
    runId: unknown,
    change: (live: Live) => Live,
    assistantId?: string,
): RoomState {
    if (typeof runId !== "string") return state;
    const before =
        state.runs.get(runId) ??
        (assistantId
            ? newRun(
                  { run_id: runId, assistant_id: assistantId, status: "running", answer: null },
                  null,
              )
            : null);
    if (!before) return state;
    return { ...state, runs: new Map(state.runs).set(runId, change(before)) };
}

interface Start {
    run_id?: string;
    assistant_id?: string;
    attempt?: number;
}

/** A run that begins again has lost what it streamed before. */
function beginRun(state: RoomState, start: Start): RoomState {
    const attempt = start.attempt ?? 1;
    const begin = (live: Live): Live => ({
        ...live,
        status: "running",
        pieces: attempt > live.attempt ? [] : live.pieces,
        attempt,
    });
    return changeRun(state, start.run_id, begin, start.assistant_id);
}

interface Chunk {
    id?: string;
    type?: string;
    content?: Content;
    tool_calls?: { name?: string | null }[];
    tool_call_chunks?: { name?: string | null }[];
}

interface ChunkPlace {
    run_id?: string;
    assistant_id?: string;
    langgraph_checkpoint_ns?: string;
}

function addChunk(pieces: readonly Piece[], chunk: Chunk): readonly Piece[] {
    const id = chunk.id ?? "";
    const { text } = partsOf({ content: chunk.content ?? "" });
    const isPart = chunk.type === "AIMessageChunk";
    const called = (isPart ? chunk.tool_call_chunks : chunk.tool_calls) ?? [];
    const tools = called.flatMap((call) => call.name || []);
    const at = pieces.findIndex((one) => one.id === id);
    const before = pieces[at];
    if (!before) return [...pieces, { id, text, tools }];
    const next = isPart
        ? { id, text: before.text + text, tools: [...before.tools, ...tools] }
        : { id, text, tools };
    return pieces.with(at, next);
}

/** Pieces of delegates and subgraphs, whose namespace has several parts, are not the answer. */
function streamPiece(state: RoomState, data: unknown): RoomState {
    if (!Array.isArray(data)) return state;
    const [chunk, place] = data as [Chunk, ChunkPlace | undefined];
    if (chunk?.type !== "AIMessageChunk" && chunk?.type !== "ai") return state;
    if (place?.langgraph_checkpoint_ns?.includes("|")) return state;
    return changeRun(
        state,
        place?.run_id,
        (live) => ({ ...live, pieces: addChunk(live.pieces, chunk) }),
        place?.assistant_id,
    );
}

/** The text of the run so far: its last piece with text. */
export function textOfLive(live: Live): string {
    return live.pieces.findLast((piece) => piece.text.trim() !== "")?.text ?? "";
}

/** The tools that the run has called so far, each once. */
export function toolsOfLive(live: Live): string[] {
    return [...new Set(live.pieces.flatMap((piece) => piece.tools))];
}

/* ---- people and cascades --------------------------------------------------- */

export function putCascade(state: RoomState, cascade: Cascade): RoomState {
    const before = state.cascades.get(cascade.cascade_id);
    if (before && before.updated_at > cascade.updated_at) return state;
    return { ...state, cascades: new Map(state.cascades).set(cascade.cascade_id, cascade) };
}

function putRead(state: RoomState, reader: Sender, seq: number): RoomState {
    if ((state.reads.get(reader.id)?.seq ?? -1) >= seq) return state;
    return { ...state, reads: new Map(state.reads).set(reader.id, { reader, seq }) };
}

export function expireTyping(state: RoomState, now: number): RoomState {
    const left = [...state.typing].filter(([, typist]) => typist.until > now);
    return left.length === state.typing.size ? state : { ...state, typing: new Map(left) };
}

interface EventData {
    message?: ChatMessage;
    run?: RoomRun;
    cascade?: Cascade;
    reader?: Sender;
    seq?: number;
    person?: Sender;
    people?: Sender[];
    run_id?: string;
    status?: string;
}

export function applyEvent(state: RoomState, { event, data }: RoomEvent, now: number): RoomState {
    if (event === "messages") return streamPiece(state, data);
    if (data === null || typeof data !== "object") return state;
    const found = data as EventData;
    switch (event) {
        case "room/message":
            return found.message ? putMessage(state, found.message) : state;
        case "room/run":
            return found.run ? putRun(state, found.run) : state;
        case "room/cascade":
            return found.cascade ? putCascade(state, found.cascade) : state;
        case "room/read":
            return found.reader ? putRead(state, found.reader, found.seq ?? 0) : state;
        case "room/typing": {
            const { person } = found;
            if (!person) return state;
            const typist = { person, until: now + TYPING_MS };
            return { ...state, typing: new Map(state.typing).set(person.id, typist) };
        }
        case "room/presence":
            return { ...state, present: found.people ?? [] };
        case "metadata":
            return beginRun(state, data);
        case "end":
            return changeRun(state, found.run_id, (live) => ({
                ...live,
                status: found.status ?? "success",
            }));
        default:
            return state;
    }
}
