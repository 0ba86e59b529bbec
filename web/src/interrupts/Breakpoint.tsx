// A run that is paused before a node without an interrupt: a breakpoint, or a stopped run.
import { useEffect, useState } from "react";
import type { AgentChat } from "@/chat/agentChat";
import { Button } from "@/ui/Button";
import styles from "./Breakpoint.module.css";

/** Between two runs, and while the page loads, a chat is briefly in this state. */
const SETTLED_MS = 600;

export function Breakpoint({ chat, name }: { chat: AgentChat; name: string }) {
    const next = chat.state?.next ?? [];
    const stands =
        next.length > 0 &&
        chat.phase === "idle" &&
        chat.interrupts.length === 0 &&
        chat.failure === null &&
        chat.stopped === null;
    const [isSettled, setSettled] = useState(false);
    useEffect(() => {
        if (!stands) return setSettled(false);
        const timer = setTimeout(() => setSettled(true), SETTLED_MS);
        return () => clearTimeout(timer);
    }, [stands]);

    const nodes = [...new Set(next)];
    return (
        <div role="status">
            {stands && isSettled && (
                <div className={styles.pause}>
                    <p>
                        {name} is paused before{" "}
                        {nodes.map((node, at) => (
                            <span key={node}>
                                {at > 0 && ", "}
                                <code>{node}</code>
                            </span>
                        ))}
                        .
                    </p>
                    <Button
                        kind="primary"
                        icon="forward"
                        onClick={() => void chat.continueRun().catch(() => undefined)}
                    >
                        Continue
                    </Button>
                </div>
            )}
        </div>
    );
}
