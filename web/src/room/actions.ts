// What the user does with a chat message.
import { reasonOf } from "@/api/client";
import { goToThread, messageHash } from "@/app/route";
import { noteThreadChange } from "@/threads/changes";
import { copyText } from "@/threads/clipboard";
import { toast } from "@/ui/toast";
import { branchRoom, deleteMessage, rateMessage } from "./api";
import { noteRoom } from "./gate";
import type { RoomSession } from "./session";
import type { ChatMessage, Rating } from "./types";

const failed = (what: string) => (error: unknown) =>
    void toast(`${what} ${reasonOf(error)}`, { kind: "error" });

export function copyLink({ thread_id, id }: ChatMessage) {
    const url = new URL(messageHash(thread_id, id), document.baseURI).href;
    copyText(url).then(
        () => toast("The link was copied."),
        () => toast("The browser denied access to the clipboard.", { kind: "error" }),
    );
}

/** A new conversation of the user that begins with the chat up to the message. */
export function continueElsewhere({ thread_id, id }: ChatMessage) {
    branchRoom(thread_id, id).then((made) => {
        noteRoom(made.thread_id);
        noteThreadChange();
        goToThread(made.thread_id);
    }, failed("No new conversation was made."));
}

export function rate(session: RoomSession, { thread_id, id }: ChatMessage, rating: Rating | null) {
    rateMessage(thread_id, id, rating).then(
        ({ message }) => session.putMessage(message),
        failed("Not rated."),
    );
}

export async function remove(
    session: RoomSession,
    { thread_id, id }: ChatMessage,
    purges: boolean,
): Promise<string[]> {
    const { message, remains } = await deleteMessage(thread_id, id, purges);
    session.putMessage(message);
    return remains;
}
