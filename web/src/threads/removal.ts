// Deletes conversations with undo: a thread disappears at once and is deleted when the undo time
// has passed, or when the page closes.
import { apiRequest, reasonOf, statusOf } from "@/api/client";
import { threadPath } from "@/api/heddle";
import { createStore, useStore } from "@/api/store";
import { getRoute, goToThread } from "@/app/route";
import { dismiss, toast } from "@/ui/toast";
import { noteThreadChange } from "./changes";
import { titleOfRecord, type ThreadRecord } from "./records";

interface Removal {
    record: ThreadRecord;
    notice: number;
    wasShown: boolean;
}

const UNDO_MS = 7000;
const pending = new Map<string, Removal>();
/** Threads hidden from the user: waiting for deletion, or just deleted. */
const hidden = createStore<ReadonlySet<string>>(new Set());

export const useHidden = () => useStore(hidden);

function hide(threadId: string, isHidden: boolean) {
    hidden.update((before) => {
        const next = new Set(before);
        if (isHidden) next.add(threadId);
        else next.delete(threadId);
        return next;
    });
}

function isShown(threadId: string): boolean {
    const route = getRoute();
    return route.view === "chat" && route.threadId === threadId;
}

function undo(threadId: string) {
    const removal = pending.get(threadId);
    if (!removal) return;
    pending.delete(threadId);
    hide(threadId, false);
    if (removal.wasShown) goToThread(threadId);
}

async function remove(threadId: string, keepalive = false): Promise<void> {
    const removal = pending.get(threadId);
    if (!removal) return;
    pending.delete(threadId);
    dismiss(removal.notice);
    try {
        await apiRequest(threadPath(threadId), { method: "DELETE", keepalive });
        noteThreadChange();
    } catch (error) {
        if (statusOf(error) === 404) return; // already deleted elsewhere
        hide(threadId, false);
        toast(`“${titleOfRecord(removal.record)}” could not be deleted. ${reasonOf(error)}`, {
            kind: "error",
        });
    }
}

export function removeThread(record: ThreadRecord) {
    const threadId = record.thread_id;
    if (pending.has(threadId)) return;
    const wasShown = isShown(threadId);
    hide(threadId, true);
    const notice = toast(`Deleted “${titleOfRecord(record)}”`, {
        ms: UNDO_MS,
        onOver: () => void remove(threadId),
        action: { label: "Undo", run: () => undo(threadId) },
    });
    pending.set(threadId, { record, notice, wasShown });
    if (wasShown) goToThread(null);
}

/** Deletes all waiting threads now: undo is no longer possible. */
export function flushRemovals(): Promise<unknown> {
    return Promise.all([...pending.keys()].map((threadId) => remove(threadId, true)));
}

window.addEventListener("pagehide", () => void flushRemovals());
