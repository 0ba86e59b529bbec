// Write access to the conversation, and the notice for the composer without it.
import { connection } from "@/api/connection";
import { useStore } from "@/api/store";
import { useThreadSummary } from "@/chat/openThread";
import { useRole } from "./records";

export interface Access {
    /** False for read-only participants. */
    canWrite: boolean;
    /** False also while the server is unreachable: the draft is kept. */
    canSend: boolean;
    /** The reason, for the composer; null: writing is possible. */
    notice: string | null;
}

const free: Access = { canWrite: true, canSend: true, notice: null };
const reader: Access = {
    canWrite: false,
    canSend: false,
    notice: "You can read this conversation. Only its owner and editors can write in it.",
};
const missing: Access = {
    canWrite: false,
    canSend: false,
    notice: "This conversation is not available.",
};
const offline: Access = {
    canWrite: true,
    canSend: false,
    notice: "The server can't be reached. Your draft stays here until it is back.",
};

export function useAccess(): Access {
    const { threadId, isMissing } = useThreadSummary();
    const role = useRole(threadId); // the header of the conversation keeps it up to date
    const state = useStore(connection);
    if (isMissing) return missing;
    if (role === "viewer") return reader;
    return state === "lost" ? offline : free;
}
