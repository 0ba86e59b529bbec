// Heddle's own endpoints, and the types that the page reads.
import type { Checkpoint, Message, ThreadState } from "@langchain/langgraph-sdk";
import { apiRequest } from "./client";

export type State = { messages?: Message[]; [member: string]: unknown };

/** An agent that took part in a thread. */
export interface ThreadAgent {
    assistant_id: string;
    graph_id: string;
    checkpoint_ns: string;
    head_checkpoint_id: string;
    checkpoints: number;
    /** Only other agents called it, as their tool. */
    delegated: boolean;
    created_at: string;
    updated_at: string;
}

/** One version of a turn: another text, or another answer. */
export interface Alternative {
    branch_id: string;
    head_checkpoint_id: string;
    created_at: string;
    current: boolean;
}

/** A person, an agent, or a service such as a cron. */
export interface Sender {
    type: "person" | "agent" | "service";
    id: string;
    name: string;
}

/** The origin of a message. */
export interface Origin {
    id: string;
    type: string;
    checkpoint_id: string;
    run_id: string | null;
    created_at: string;
    /** Who said it; null: not known. */
    sender?: Sender | null;
    /** Between agents: one called the other as its tool. */
    delegated: boolean;
    /** The checkpoint that an edit or a retry starts from; only for messages of the user. */
    fork_checkpoint_id: string | null;
    alternatives: Alternative[];
}

export interface Origins {
    thread_id: string;
    assistant_id: string | null;
    checkpoint_ns: string | null;
    checkpoint_id: string | null;
    messages: Origin[];
}

export interface Branch {
    branch_id: string;
    parent_branch_id: string | null;
    fork_checkpoint_id: string | null;
    head_checkpoint_id: string;
    leaf: boolean;
    current: boolean;
    checkpoints: number;
    source: string | null;
    run_id: string | null;
    created_at: string;
    updated_at: string;
    message: Message | null;
    /** The start of the answer. */
    answer: string | null;
    name: string | null;
}

export interface Branches {
    thread_id: string;
    assistant_id: string | null;
    checkpoint_ns: string | null;
    head: string | null;
    branches: Branch[];
}

/** The receipt of a cancelled run. */
export interface Receipt {
    stopped_at_step: number | null;
    tokens_streamed: number;
    tools_in_flight: { name: string; id: string }[];
}

/** An issuer where users sign in. */
export interface SignInMethod {
    name: string;
    issuer: string;
    client_id: string;
    /** null: the server can't reach the issuer at the moment. */
    authorization_endpoint: string | null;
    scope: string;
}

export interface Settings {
    version: string;
    needs_sign_in: boolean;
    sign_in: SignInMethod[];
}

export interface Usage {
    bytes: number;
    checkpoints: number;
}

interface Where {
    assistantId: string;
    checkpointId?: string | null;
    signal?: AbortSignal;
}

/** The path of a thread. */
export const threadPath = (threadId: string) => `/threads/${encodeURIComponent(threadId)}`;

export function getAgents(threadId: string, signal?: AbortSignal): Promise<ThreadAgent[]> {
    return apiRequest(`${threadPath(threadId)}/agents`, { signal });
}

export function getOrigins(
    threadId: string,
    { assistantId, checkpointId, signal }: Where,
): Promise<Origins> {
    const query = { assistant_id: assistantId, checkpoint_id: checkpointId };
    return apiRequest(`${threadPath(threadId)}/messages`, { query, signal });
}

export function getState(
    threadId: string,
    { assistantId, checkpointId, signal }: Where,
): Promise<ThreadState<State>> {
    const path = checkpointId
        ? `${threadPath(threadId)}/state/${encodeURIComponent(checkpointId)}`
        : `${threadPath(threadId)}/state`;
    return apiRequest(path, { query: { assistant_id: assistantId }, signal });
}

export function getBranches(threadId: string, { assistantId, signal }: Where): Promise<Branches> {
    return apiRequest(`${threadPath(threadId)}/branches`, {
        query: { assistant_id: assistantId },
        signal,
    });
}

export function nameBranch(
    threadId: string,
    assistantId: string,
    branchId: string,
    name: string | null,
): Promise<Branch> {
    const path = `${threadPath(threadId)}/branches/${encodeURIComponent(branchId)}`;
    return apiRequest(path, {
        method: "PATCH",
        query: { assistant_id: assistantId },
        body: { name },
    });
}

export function pruneBranch(
    threadId: string,
    assistantId: string,
    branchId: string,
): Promise<null> {
    const path = `${threadPath(threadId)}/branches/${encodeURIComponent(branchId)}`;
    return apiRequest(path, { method: "DELETE", query: { assistant_id: assistantId } });
}

/** Stops a run and returns its receipt; null: the run had already ended. */
export async function cancelRun(threadId: string, runId: string): Promise<Receipt | null> {
    const path = `${threadPath(threadId)}/runs/${encodeURIComponent(runId)}/cancel`;
    const answer = await apiRequest<{ receipt?: Receipt } | null>(path, {
        method: "POST",
        query: { wait: 1, action: "interrupt" },
    });
    return answer?.receipt ?? null;
}

export function getSettings(signal?: AbortSignal): Promise<Settings> {
    return apiRequest("/page/settings", { signal, as: null });
}

/** A checkpoint as a run request takes it. */
export function checkpointOf(ns: string | null, id: string): Omit<Checkpoint, "thread_id"> {
    return { checkpoint_ns: ns ?? "", checkpoint_id: id, checkpoint_map: null };
}
