// The rows of a room: who speaks, what is new, what replaces what. Pure.
import { isWriting, type Live, type RoomState } from "./model";
import type { Cascade, ChatMessage, Sender } from "./types";

/** The answer of a running cascade that takes the place of a message. */
export interface Rewrite {
    cascade: Cascade;
    status: Cascade["plan"][number]["status"];
    live: Live | null;
}

export interface Row {
    message: ChatMessage;
    isOwn: boolean;
    /** The row shows its sender, because the speaker changes here. */
    showsSender: boolean;
    /** The row shows the message that it replies to, because it is not the one before it. */
    showsQuote: boolean;
    /** The first message that the user has not read. */
    isFirstUnread: boolean;
    rewrite: Rewrite | null;
}

const GROUP_MS = 5 * 60_000;

const isSame = (one: Sender, other: Sender) => one.type === other.type && one.id === other.id;

function isFollowUp(before: ChatMessage | undefined, message: ChatMessage): boolean {
    if (!before || !isSame(before.sender, message.sender)) return false;
    const pause = Date.parse(message.created_at) - Date.parse(before.created_at);
    return message.sender.type === "person" && message.reply_to === null && pause < GROUP_MS;
}

/** Answers of several agents follow their question directly. */
function isNextTo(messages: readonly ChatMessage[], at: number): boolean {
    const { reply_to, sender } = messages[at]!;
    if (sender.type !== "agent") return messages[at - 1]?.id === reply_to;
    let before = at - 1;
    while (messages[before]?.sender.type === "agent" && messages[before]?.reply_to === reply_to)
        before--;
    return messages[before]?.id === reply_to;
}

export function isOpenCascade({ status }: Cascade): boolean {
    return status === "running" || status === "waiting";
}

/** By the id of the answer that is made again. */
function rewritesOf({ cascades, runs }: RoomState): Map<string, Rewrite> {
    const rewrites = new Map<string, Rewrite>();
    for (const cascade of cascades.values()) {
        if (!isOpenCascade(cascade)) continue;
        for (const { answer, status, blocked, new_run_id } of cascade.plan) {
            if (!answer || blocked !== null || status === "skipped") continue;
            rewrites.set(answer, { cascade, status, live: runs.get(new_run_id ?? "") ?? null });
        }
    }
    return rewrites;
}

/** The id of the first of the newest `unread` messages of others; null: all are read. */
export function firstUnread(
    messages: readonly ChatMessage[],
    me: Sender,
    unread: number,
): string | null {
    const others = messages.filter(
        (one) => !isSame(one.sender, me) && one.state !== "deleted" && one.state !== "stale",
    );
    return unread > 0 ? (others.slice(-unread)[0]?.id ?? null) : null;
}

export function rowsOf(state: RoomState, me: Sender, firstNew: string | null): Row[] {
    const rewrites = rewritesOf(state);
    return state.messages.map((message, at) => ({
        message,
        isOwn: isSame(message.sender, me),
        showsSender: message.id === firstNew || !isFollowUp(state.messages[at - 1], message),
        showsQuote: message.reply_to !== null && !isNextTo(state.messages, at),
        isFirstUnread: message.id === firstNew,
        rewrite: rewrites.get(message.id) ?? null,
    }));
}

/** The runs that write an answer now, oldest first, without those of cascades. */
export function writersOf({ runs, cascades, messages }: RoomState): Live[] {
    const known = new Set(messages.flatMap((message) => message.run_id ?? []));
    const redone = new Set(
        [...cascades.values()].flatMap(({ plan }) => plan.flatMap((step) => step.new_run_id ?? [])),
    );
    return [...runs.values()].filter(
        (live) => isWriting(live) && !known.has(live.runId) && !redone.has(live.runId),
    );
}

/** The cascade to show: the open one, else the latest until the conversation goes on. */
export function shownCascade({ cascades, messages }: RoomState): Cascade | null {
    const list = [...cascades.values()].toSorted((a, b) => (a.created_at < b.created_at ? 1 : -1));
    const [latest] = list;
    const open = list.find(isOpenCascade);
    if (open || !latest) return open ?? null;
    const isPast = messages.some((message) => message.created_at > latest.updated_at);
    return isPast ? null : latest;
}

/** How many steps have ended, and how many there are to do. */
export function progressOf({ plan }: Cascade): { done: number; all: number } {
    const all = plan.filter((step) => step.blocked === null);
    const done = all.filter(({ status }) => ["done", "failed", "skipped"].includes(status));
    return { done: done.length, all: all.length };
}

/** The readers of everything up to a message, besides the user. */
export function readersOf({ reads }: RoomState, seq: number, me: Sender): Sender[] {
    return [...reads.values()]
        .filter(({ reader, seq: upTo }) => upTo >= seq && !isSame(reader, me))
        .map(({ reader }) => reader);
}

/** "Ann", "Ann and Bob", "Ann, Bob and 2 others". */
export function namesOf(people: readonly Sender[]): string {
    const names = people.map((one) => one.name || one.id);
    if (names.length <= 2) return names.join(" and ");
    if (names.length === 3) return `${names[0]}, ${names[1]} and ${names[2]}`;
    return `${names[0]}, ${names[1]} and ${names.length - 2} others`;
}
