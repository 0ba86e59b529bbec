// The open room for the components of its view.
import { createContext, useContext, useEffect, useState, type ReactNode } from "react";
import { connection } from "@/api/connection";
import { useStore } from "@/api/store";
import { useRole } from "@/threads/records";
import { createSession, type OpenRoom, type RoomSession } from "./session";

const SessionContext = createContext<RoomSession | null>(null);

export function RoomProvider({ threadId, children }: { threadId: string; children: ReactNode }) {
    const [session] = useState(() => createSession(threadId));
    useEffect(() => session.start(), [session]);
    return <SessionContext value={session}>{children}</SessionContext>;
}

export function useSession(): RoomSession {
    const session = useContext(SessionContext);
    if (!session) throw new Error("useSession() needs a RoomProvider around it");
    return session;
}

export const useOpenRoom = (): OpenRoom => useStore(useSession().store);

export interface RoomAccess {
    canWrite: boolean;
    /** False also while the server is unreachable. */
    canSend: boolean;
    isOwner: boolean;
    notice: string | null;
}

export function useRoomAccess(): RoomAccess {
    const role = useRole(useSession().threadId);
    const isLost = useStore(connection) === "lost";
    const canWrite = role !== "viewer";
    return {
        canWrite,
        canSend: canWrite && !isLost,
        isOwner: role === undefined || role === "owner",
        notice: !canWrite
            ? "You can read this room. Only its owner and editors can write in it."
            : isLost
              ? "The server can't be reached. Your draft stays here until it is back."
              : null,
    };
}
