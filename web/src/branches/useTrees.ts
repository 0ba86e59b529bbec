// The trees of all agents in the conversation, reloaded when one of them advances.
import { useCallback, useEffect, useMemo, useState } from "react";
import { reasonOf, statusOf } from "@/api/client";
import { getBranches, type Branches } from "@/api/heddle";
import { useStore } from "@/api/store";
import type { AgentChat } from "@/chat/agentChat";
import { useOpenThread } from "@/chat/openThread";
import { threadChanges } from "@/threads/changes";
import { buildTree, type Node } from "./model";

export interface Tree {
    chat: AgentChat;
    nodes: Node[];
    count: number;
}

interface Read {
    all: ReadonlyMap<string, Branches>;
    isLoading: boolean;
    reason: string | null;
}

async function readOne(
    threadId: string,
    assistantId: string,
    signal: AbortSignal,
): Promise<Branches | null> {
    try {
        return await getBranches(threadId, { assistantId, signal });
    } catch (error) {
        if (statusOf(error) === 404) return null; // no run yet
        throw error;
    }
}

async function readAll(threadId: string, ids: string[], signal: AbortSignal) {
    const list = await Promise.all(ids.map((id) => readOne(threadId, id, signal)));
    return new Map(ids.flatMap((id, i) => (list[i] ? [[id, list[i]] as const] : [])));
}

export function useTrees() {
    const { threadId, exists, chats } = useOpenThread();
    const changes = useStore(threadChanges);
    const [reloads, setReloads] = useState(0);
    const [now, setNow] = useState<Read>({ all: new Map(), isLoading: true, reason: null });
    const ids = chats.map((chat) => chat.assistantId).join();
    const ends = chats
        .map((chat) => `${chat.phase} ${chat.state?.checkpoint.checkpoint_id ?? ""}`)
        .join();

    useEffect(() => {
        if (!exists) return setNow({ all: new Map(), isLoading: false, reason: null });
        const controller = new AbortController();
        readAll(threadId, ids ? ids.split(",") : [], controller.signal).then(
            (all) => setNow({ all, isLoading: false, reason: null }),
            (error: unknown) => {
                if (!controller.signal.aborted)
                    setNow((before) => ({ ...before, isLoading: false, reason: reasonOf(error) }));
            },
        );
        return () => controller.abort();
    }, [threadId, exists, ids, ends, changes, reloads]);

    const reload = useCallback(() => setReloads((count) => count + 1), []);
    const heads = chats.map((chat) => chat.head ?? "").join();
    const trees = useMemo(
        () =>
            chats.flatMap((chat): Tree[] => {
                const read = now.all.get(chat.assistantId);
                if (!read || read.branches.length === 0) return [];
                const nodes = buildTree(read.branches, chat.head ?? read.head);
                return [
                    { chat, nodes, count: read.branches.filter((branch) => branch.leaf).length },
                ];
            }),
        // Every chunk of a stream creates a new chat object; the tree stays the same.
        [now, ids, heads],
    );
    return { trees, isLoading: now.isLoading, reason: now.reason, reload };
}
