// Decides whether a thread is shown as a room.
import { useEffect } from "react";
import { createStore, useStore } from "@/api/store";
import { onOtherPerson } from "@/signin/identity";
import { isRoom } from "./api";

type Kind = "room" | "plain";

const kinds = createStore<ReadonlyMap<string, Kind>>(new Map());

onOtherPerson(() => kinds.set(new Map()));

function setKind(threadId: string, kind: Kind) {
    kinds.update((before) => new Map(before).set(threadId, kind));
}

/** The thread was turned into a room. */
export const noteRoom = (threadId: string) => setKind(threadId, "room");

/** null: not known yet. A thread that the page creates is not a room. */
export function useKind(threadId: string, isNew: boolean): Kind | null {
    const kind = useStore(kinds).get(threadId) ?? null;
    useEffect(() => {
        if (kinds.get().has(threadId)) return;
        if (isNew) return setKind(threadId, "plain");
        const controller = new AbortController();
        isRoom(threadId, controller.signal).then(
            (is) => setKind(threadId, is ? "room" : "plain"),
            () => controller.signal.aborted || setKind(threadId, "plain"),
        );
        return () => controller.abort();
    }, [threadId, isNew]);
    return isNew && kind === null ? "plain" : kind;
}

export const isRoomKnown = (threadId: string) => kinds.get().get(threadId) === "room";
