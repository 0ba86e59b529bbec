// The agents of a thread, and the default agent.
import type { Assistant } from "@langchain/langgraph-sdk";
import { useEffect, useState } from "react";
import { statusOf } from "@/api/client";
import { getAgents, type ThreadAgent } from "@/api/heddle";
import { keep, readStored } from "@/api/storage";

interface ThreadAgents {
    /** In the order of first use. */
    ids: string[];
    /** The agent of the user's last message. */
    last: string | null;
}

function agentsOf(list: ThreadAgent[]): ThreadAgents {
    const known = list.filter((agent) => agent.assistant_id);
    const direct = known.filter((agent) => !agent.delegated);
    const last = direct.reduce<ThreadAgent | null>(
        (latest, agent) => (latest && latest.updated_at > agent.updated_at ? latest : agent),
        null,
    );
    return {
        ids: [...new Set(known.map((agent) => agent.assistant_id))],
        last: last?.assistant_id ?? null,
    };
}

export function useThreadAgents(threadId: string, exists: boolean, changes: number) {
    const [agents, setAgents] = useState<ThreadAgents | null>(
        exists ? null : { ids: [], last: null },
    );
    const [isMissing, setMissing] = useState(false);
    const [error, setError] = useState<unknown>(null);
    useEffect(() => {
        if (!exists) return;
        const controller = new AbortController();
        getAgents(threadId, controller.signal).then(
            (list) => {
                setAgents(agentsOf(list));
                setMissing(false);
                setError(null);
            },
            (error: unknown) => {
                if (controller.signal.aborted) return;
                if (statusOf(error) === 404) setMissing(true);
                setError(error);
            },
        );
        return () => controller.abort();
    }, [threadId, exists, changes]);
    return { agents, isMissing, error };
}

const PREFERRED = "heddle:agent";

export function preferred(list: Assistant[]): string | null {
    const kept = readStored("localStorage", PREFERRED);
    return (
        (
            list.find((one) => one.assistant_id === kept) ??
            list.find((one) => one.graph_id === "agent") ??
            list[0]
        )?.assistant_id ?? null
    );
}

/** The agent selected last is the default for new conversations. */
export const prefer = (assistantId: string) => keep("localStorage", PREFERRED, assistantId);
