import type { ThreadState } from "@langchain/langgraph-sdk";
import { useEffect, useMemo, useState } from "react";
import { reasonOf } from "@/api/client";
import { getState, type State } from "@/api/heddle";
import { Button } from "@/ui/Button";
import { diff, type Change } from "./diff";
import { JsonNode } from "./JsonTree";
import styles from "./StatePanel.module.css";

interface ChangesProps {
    threadId: string;
    assistantId: string;
    state: ThreadState<State>;
}

const signs: Record<Change["kind"], string> = { added: "+", changed: "~", removed: "−" };

function OneChange({ change: { kind, path, before, after, label } }: { change: Change }) {
    return (
        <li className={styles[kind]}>
            <p className={styles.path}>
                <span aria-hidden="true">{signs[kind]}</span>
                <span className="visually-hidden">{kind}: </span>
                {path.join(" › ") || "everything"}
            </p>
            {label ? (
                <JsonNode name="message" value={after ?? before} />
            ) : (
                <>
                    {kind !== "added" && <JsonNode name="before" value={before} />}
                    {kind !== "removed" && <JsonNode name="after" value={after} />}
                </>
            )}
        </li>
    );
}

/** The changes of the step to this checkpoint. */
export function Changes({ threadId, assistantId, state }: ChangesProps) {
    const parent = state.parent_checkpoint?.checkpoint_id ?? null;
    const [before, setBefore] = useState<ThreadState<State> | null>(null);
    const [problem, setProblem] = useState<string | null>(null);
    const [tries, setTries] = useState(0);

    useEffect(() => {
        if (!parent) return;
        const controller = new AbortController();
        setProblem(null);
        getState(threadId, { assistantId, checkpointId: parent, signal: controller.signal }).then(
            setBefore,
            (error: unknown) => {
                if (!controller.signal.aborted) setProblem(reasonOf(error));
            },
        );
        return () => controller.abort();
    }, [threadId, assistantId, parent, tries]);

    const found = useMemo(
        () => (before ? diff(before.values, state.values) : null),
        [before, state],
    );

    if (!parent)
        return <p className={styles.soft}>This is the first checkpoint: everything is new.</p>;
    if (problem)
        return (
            <p className={styles.error} role="alert">
                Could not load the parent checkpoint. {problem}{" "}
                <Button kind="quiet" icon="retry" onClick={() => setTries(tries + 1)}>
                    Try again
                </Button>
            </p>
        );
    if (!found) return <p className={styles.soft}>Comparing…</p>;
    if (found.changes.length === 0) return <p className={styles.soft}>No values have changed.</p>;
    return (
        <>
            <ul className={styles.changes}>
                {found.changes.map((change) => (
                    <OneChange key={`${change.kind} ${change.path.join("/")}`} change={change} />
                ))}
            </ul>
            {found.isCut && (
                <p className={styles.soft}>
                    Only the first {found.changes.length} changes are shown.
                </p>
            )}
        </>
    );
}
