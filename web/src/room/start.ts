// Turns a conversation into a room, or begins a new one.
import { client, reasonOf } from "@/api/client";
import { goToThread } from "@/app/route";
import { noteThreadChange } from "@/threads/changes";
import { toast } from "@/ui/toast";
import { changeRoom } from "./api";
import { isRoomKnown, noteRoom } from "./gate";

/** The agent answers messages that name none. */
export async function openRoom(threadId: string, assistantId: string | null): Promise<void> {
    try {
        if (!isRoomKnown(threadId))
            await changeRoom(threadId, { default_assistant_id: assistantId });
        noteRoom(threadId);
        noteThreadChange();
        goToThread(threadId);
    } catch (error) {
        toast(`The room was not started. ${reasonOf(error)}`, { kind: "error" });
    }
}

/** A room without a conversation before it. */
export async function startRoom(assistantId: string | null): Promise<void> {
    try {
        const { thread_id } = await client.threads.create({ metadata: { title: "New room" } });
        await openRoom(thread_id, assistantId);
    } catch (error) {
        toast(`The room was not started. ${reasonOf(error)}`, { kind: "error" });
    }
}
