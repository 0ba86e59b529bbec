// The face of a sender: initials in a colour by id. Agents are square, people are round.
import type { CSSProperties } from "react";
import { colourOf } from "@/agents/colours";
import { hashOf } from "@/agents/palette";
import styles from "./Face.module.css";
import type { Sender } from "./types";

/** "Weather desk" is WD, "ann" is AN. */
export function initialsOf(name: string): string {
    const words = name.split(/[^\p{L}\p{N}]+/u).filter(Boolean);
    const [first = "?", second] = words;
    const letters = second ? first.slice(0, 1) + second.slice(0, 1) : first.slice(0, 2);
    return letters.toUpperCase();
}

export function colourOfSender({ type, id }: Sender): string {
    return type === "agent" ? colourOf(id) : `var(--agent-${hashOf(id)})`;
}

interface FaceProps {
    sender: Sender;
    size?: "small" | "normal";
    isHere?: boolean;
}

/** The name is beside it: screen readers skip the face. */
export function Face({ sender, size = "normal", isHere = false }: FaceProps) {
    const names = [
        styles.face,
        sender.type === "agent" ? styles.agent : "",
        size === "small" ? styles.small : "",
        isHere ? styles.here : "",
    ];
    return (
        <span
            className={names.join(" ")}
            style={{ "--face": colourOfSender(sender) } as CSSProperties}
            aria-hidden="true"
        >
            {initialsOf(sender.name || sender.id)}
        </span>
    );
}
