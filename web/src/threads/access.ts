// Whether the user may write in the conversation, and what to say where it is written if not.
import { connection } from "@/api/connection";
import { useStore } from "@/api/store";
import { useThreadSummary } from "@/chat/openThread";
import { useRole } from "./records";

export interface Access {
    /** False for those who may only read. */
    canWrite: boolean;
    /** False also while the server can't be reached: what is typed stays. */
    canSend: boolean;
    /** Why not, for the composer; null: all is well. */
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
    notice: "There is nothing here to write in.",
};
const offline: Access = {
    canWrite: true,
    canSend: false,
    notice: "The server can't be reached. What you write stays here until it is back.",
};

export function useAccess(): Access {
    const { threadId, isMissing } = useThreadSummary();
    const role = useRole(threadId); // the head of the conversation keeps it fresh
    const state = useStore(connection);
    if (isMissing) return missing;
    if (role === "viewer") return reader;
    return state === "lost" ? offline : free;
}
