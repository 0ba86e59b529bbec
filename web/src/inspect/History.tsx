import type { ThreadState } from "@langchain/langgraph-sdk";
import { useCallback, useEffect, useRef, useState } from "react";
import { apiRequest, reasonOf } from "@/api/client";
import { threadPath, type State } from "@/api/heddle";
import type { AgentChat } from "@/chat/agentChat";
import { fullDate, shortDate } from "@/threads/dates";
import { Button } from "@/ui/Button";
import styles from "./StatePanel.module.css";

const PAGE = 20;
/** Without the values, which may be large and are loaded when a state is shown. */
const SELECT = ["checkpoint", "metadata", "created_at", "next"];

interface Row {
    id: string;
    createdAt: string;
    step: string;
    source: string;
    next: string[];
}

function rowOf({ checkpoint, metadata, created_at, next }: ThreadState<State>): Row {
    return {
        id: checkpoint.checkpoint_id ?? "",
        createdAt: created_at ?? "",
        step: String(metadata?.step ?? ""),
        source: String(metadata?.source ?? ""),
        next,
    };
}

/** The checkpoints of the chat with all of its branches, newest first, in pages. */
export function History({ threadId, chat }: { threadId: string; chat: AgentChat }) {
    const shownId = chat.state?.checkpoint.checkpoint_id ?? null;
    const [rows, setRows] = useState<Row[]>([]);
    const [hasMore, setMore] = useState(true);
    const [isLoading, setLoading] = useState(false);
    const [problem, setProblem] = useState<string | null>(null);
    const newest = useRef<string | null>(null);
    const ns = chat.state?.checkpoint.checkpoint_ns ?? "";

    const load = useCallback(
        async (before: string | null) => {
            setLoading(true);
            setProblem(null);
            try {
                const path = `${threadPath(threadId)}/history`;
                const past = before
                    ? { before: { configurable: { checkpoint_id: before, checkpoint_ns: ns } } }
                    : {};
                const body = {
                    limit: PAGE,
                    checkpoint: { checkpoint_ns: ns },
                    select: SELECT,
                    ...past,
                };
                const states = await apiRequest<ThreadState<State>[]>(path, {
                    method: "POST",
                    body,
                });
                const found = states.map(rowOf);
                setRows((known) => (before ? [...known, ...found] : found));
                setMore(found.length === PAGE);
            } catch (error) {
                setProblem(reasonOf(error));
            } finally {
                setLoading(false);
            }
        },
        [threadId, ns],
    );
    // The latest checkpoint changes with each run; selecting an earlier one does not change the
    // list.
    const isKnown = rows.some((row) => row.id === shownId);
    useEffect(() => {
        if (shownId === null || isKnown || newest.current === shownId) return;
        newest.current = shownId;
        void load(null);
    }, [shownId, isKnown, load]);

    const now = new Date();
    return (
        <>
            <ol className={styles.history}>
                {rows.map((row) => (
                    <li key={row.id}>
                        <button
                            type="button"
                            aria-current={row.id === shownId ? "true" : undefined}
                            onClick={() => chat.show(row.id)}
                        >
                            <span className="visually-hidden">Show </span>
                            <span className={styles.step}>{row.step}</span>
                            <span>{row.source}</span>
                            <span className={styles.nextNodes}>
                                {row.next.length > 0 ? `→ ${row.next.join(", ")}` : "ended"}
                            </span>
                            <time
                                dateTime={row.createdAt}
                                title={row.createdAt && fullDate(row.createdAt)}
                            >
                                {row.createdAt && shortDate(row.createdAt, now)}
                            </time>
                        </button>
                    </li>
                ))}
            </ol>
            {problem && (
                <p className={styles.error} role="alert">
                    {problem}
                </p>
            )}
            {hasMore && rows.length > 0 && (
                <Button
                    kind="quiet"
                    disabled={isLoading}
                    onClick={() => void load(rows.at(-1)?.id ?? null)}
                >
                    {isLoading ? "Loading…" : "Show earlier checkpoints"}
                </Button>
            )}
            {chat.head !== null && (
                <Button icon="forward" onClick={() => chat.show(null)}>
                    Back to the latest
                </Button>
            )}
        </>
    );
}
