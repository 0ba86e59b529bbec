// The name of an agent in its colour, with a dot as a quick visual mark.
import type { CSSProperties } from "react";
import { nameOf, useAssistants } from "@/api/assistants";
import styles from "./AgentBadge.module.css";
import { colourOf } from "./colours";

interface BadgeProps {
    assistantId: string;
    /** Used when the assistant is not in the loaded list. */
    name?: string;
    size?: "small" | "normal";
}

export function AgentBadge({ assistantId, name, size = "normal" }: BadgeProps) {
    const { list } = useAssistants();
    const assistant = list.find((one) => one.assistant_id === assistantId);
    return (
        <span
            className={`${styles.badge} ${size === "small" ? styles.small : ""}`}
            style={{ "--agent": colourOf(assistantId) } as CSSProperties}
        >
            <span className={styles.dot} aria-hidden="true" />
            <span className={styles.name}>
                {assistant ? nameOf(assistant) : (name ?? nameOf(undefined))}
            </span>
        </span>
    );
}
