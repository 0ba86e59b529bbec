// The details of a thread from the server: size, time to live, participants.
import { apiRequest } from "@/api/client";
import { threadPath, type Usage } from "@/api/heddle";
import type { Role } from "./records";

export interface TimeToLive {
    /** Minutes. */
    ttl: number;
    strategy: string;
    expires_at: string | null;
}

export interface Details {
    usage?: Usage;
    ttl: TimeToLive | null;
}

export interface Participant {
    participant_id: string;
    role: Exclude<Role, "owner">;
    issuer: string;
    subject?: string;
    organisation?: string;
    since: string;
}

export interface Invitation {
    invitation_id: string;
    role: Exclude<Role, "owner">;
    uses: number;
    uses_left: number;
    created_at: string;
    expires_at: string;
}

export interface Removed {
    checkpoints: number;
    writes: number;
    runs: number;
    bytes: number;
}

export type PruneStrategy = "keep_branches" | "keep_latest";

/** Without the values of the thread, which may be large. */
export async function getDetails(threadId: string): Promise<Details> {
    const body = { ids: [threadId], select: ["usage", "ttl"], limit: 1 };
    const [found] = await apiRequest<Details[]>("/threads/search", { method: "POST", body });
    if (!found) throw new Error("This conversation no longer exists.");
    return found;
}

export function setTimeToLive(threadId: string, minutes: number | null): Promise<unknown> {
    return apiRequest(threadPath(threadId), { method: "PATCH", body: { ttl: minutes ?? 0 } });
}

export function prune(threadId: string, strategy: PruneStrategy, isDry: true): Promise<Removed>;
export function prune(threadId: string, strategy: PruneStrategy, isDry: false): Promise<unknown>;
export function prune(threadId: string, strategy: PruneStrategy, isDry: boolean): Promise<unknown> {
    const body = { thread_ids: [threadId], strategy, dry_run: isDry };
    return apiRequest("/threads/prune", { method: "POST", body });
}

export interface Newcomer {
    issuer: string;
    subject?: string;
    organisation?: string;
    role: Participant["role"];
}

export function getParticipants(threadId: string): Promise<Participant[]> {
    return apiRequest(`${threadPath(threadId)}/participants`);
}

export function addParticipant(threadId: string, newcomer: Newcomer): Promise<unknown> {
    return apiRequest(`${threadPath(threadId)}/participants`, { method: "POST", body: newcomer });
}

export function setRole(
    threadId: string,
    participantId: string,
    role: Participant["role"],
): Promise<unknown> {
    const path = `${threadPath(threadId)}/participants/${encodeURIComponent(participantId)}`;
    return apiRequest(path, { method: "PATCH", body: { role } });
}

export function removeParticipant(threadId: string, participantId: string): Promise<unknown> {
    return apiRequest(`${threadPath(threadId)}/participants/${encodeURIComponent(participantId)}`, {
        method: "DELETE",
    });
}

export function getInvitations(threadId: string): Promise<Invitation[]> {
    return apiRequest(`${threadPath(threadId)}/invitations`);
}

export function invite(
    threadId: string,
    role: Invitation["role"],
    uses: number,
): Promise<Invitation & { token: string }> {
    return apiRequest(`${threadPath(threadId)}/invitations`, {
        method: "POST",
        body: { role, uses },
    });
}

export function takeBack(threadId: string, invitationId: string): Promise<unknown> {
    return apiRequest(`${threadPath(threadId)}/invitations/${encodeURIComponent(invitationId)}`, {
        method: "DELETE",
    });
}
