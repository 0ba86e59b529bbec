// The endpoints of rooms.
import type { Thread } from "@langchain/langgraph-sdk";
import { apiRequest, Refusal } from "@/api/client";
import { threadPath } from "@/api/heddle";
import { noteMe } from "./me";
import type {
    Cascade,
    ChatMessage,
    Content,
    Mention,
    MessageRun,
    Plan,
    Rating,
    Room,
    RoomSettings,
    Version,
} from "./types";

const roomPath = (threadId: string) => `${threadPath(threadId)}/room`;
const messagePath = (threadId: string, messageId: string) =>
    `${roomPath(threadId)}/messages/${encodeURIComponent(messageId)}`;

export function getRoom(threadId: string, signal?: AbortSignal): Promise<Room> {
    return apiRequest(roomPath(threadId), { signal });
}

/** Members that are absent keep their value. */
export function changeRoom(threadId: string, settings: Partial<RoomSettings>): Promise<Room> {
    return apiRequest(roomPath(threadId), { method: "PUT", body: settings });
}

export interface NewMessage {
    id: string;
    content: Content;
    reply_to?: string;
    metadata?: Record<string, unknown>;
}

/** A repeated request with the same id posts nothing twice. */
export function postMessage(
    threadId: string,
    message: NewMessage,
): Promise<{ message: ChatMessage; runs: MessageRun[] }> {
    return apiRequest(`${roomPath(threadId)}/messages`, { method: "POST", body: message });
}

export interface MessageQuery {
    after?: number;
    before?: number;
    limit?: number;
    text?: string;
    order?: "asc" | "desc";
}

export function getMessages(
    threadId: string,
    query: MessageQuery,
    signal?: AbortSignal,
): Promise<ChatMessage[]> {
    return apiRequest(`${roomPath(threadId)}/messages`, { query: { ...query }, signal });
}

export function getMessage(
    threadId: string,
    messageId: string,
): Promise<ChatMessage & { versions: Version[] }> {
    return apiRequest(messagePath(threadId, messageId));
}

export interface Edit {
    content: Content;
    cascade?: "auto" | "none";
    if_running?: "reject" | "interrupt";
}

export interface Edited {
    message: ChatMessage;
    cascade: Cascade | null;
}

export function planEdit(threadId: string, messageId: string, edit: Edit): Promise<Plan> {
    const body = { ...edit, dry_run: true };
    return apiRequest(messagePath(threadId, messageId), { method: "PATCH", body });
}

export function editMessage(threadId: string, messageId: string, edit: Edit): Promise<Edited> {
    return apiRequest(messagePath(threadId, messageId), { method: "PATCH", body: edit });
}

export function planRetry(threadId: string, messageId: string): Promise<Plan> {
    const body = { dry_run: true };
    return apiRequest(`${messagePath(threadId, messageId)}/retry`, { method: "POST", body });
}

export function retryMessage(threadId: string, messageId: string): Promise<Edited> {
    return apiRequest(`${messagePath(threadId, messageId)}/retry`, { method: "POST", body: {} });
}

export function deleteMessage(
    threadId: string,
    messageId: string,
    purges: boolean,
): Promise<{ message: ChatMessage; remains: string[] }> {
    const query = purges ? { purge: "true" } : {};
    return apiRequest(messagePath(threadId, messageId), { method: "DELETE", query });
}

export function withdrawQuestion(
    threadId: string,
    messageId: string,
): Promise<{ message: ChatMessage }> {
    return apiRequest(`${messagePath(threadId, messageId)}/withdraw`, { method: "POST", body: {} });
}

export function rateMessage(
    threadId: string,
    messageId: string,
    rating: Rating | null,
): Promise<{ message: ChatMessage }> {
    const body = { rating };
    return apiRequest(`${messagePath(threadId, messageId)}/feedback`, { method: "POST", body });
}

export function stopRoom(threadId: string): Promise<{ cancelled: unknown[] }> {
    return apiRequest(`${roomPath(threadId)}/stop`, { method: "POST", body: {} });
}

export function getCascades(threadId: string, signal?: AbortSignal): Promise<Cascade[]> {
    return apiRequest(`${threadPath(threadId)}/cascades`, { query: { limit: 10 }, signal });
}

export type CascadeAction = "approve" | "decline" | "cancel" | "undo";

export function actOnCascade(
    threadId: string,
    cascadeId: string,
    action: CascadeAction,
): Promise<Cascade> {
    const path = `${threadPath(threadId)}/cascades/${encodeURIComponent(cascadeId)}`;
    return apiRequest(path, { method: "POST", body: { action } });
}

/** A new conversation of the user: the chat up to the message. */
export function branchRoom(threadId: string, messageId: string): Promise<Thread> {
    const body = { message_id: messageId };
    return apiRequest(`${roomPath(threadId)}/branch`, { method: "POST", body });
}

export function markRead(threadId: string, seq: number): Promise<{ seq: number; unread: number }> {
    return apiRequest(`${roomPath(threadId)}/read`, { method: "PUT", body: { seq } });
}

export function reportTyping(threadId: string): Promise<null> {
    return apiRequest(`${roomPath(threadId)}/typing`, { method: "POST", body: {} });
}

export function getMentions(limit: number, before?: string): Promise<Mention[]> {
    return apiRequest("/mentions", { query: { limit, before } });
}

/** Reports whether a thread is used as a room; false if the server refuses the request. */
export async function isRoom(threadId: string, signal: AbortSignal): Promise<boolean> {
    try {
        const room = await getRoom(threadId, signal);
        noteMe(room.me);
        return room.last_seq > 0 || room.default_assistant_id !== null || room.agents.length > 0;
    } catch (error) {
        if (error instanceof Refusal || error instanceof TypeError) return false;
        throw error;
    }
}
