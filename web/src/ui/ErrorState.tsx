// Shown in place of content that could not be loaded: the reason, and actions.
import type { ReactNode } from "react";
import { Icon, type IconName } from "./icons";
import styles from "./ErrorState.module.css";

interface Props {
    icon: IconName;
    title: string;
    text: string;
    /** Buttons for recovery. */
    children: ReactNode;
}

export function ErrorState({ icon, title, text, children }: Props) {
    return (
        <div className={styles.sorry} role="alert">
            <span className={styles.icon}>
                <Icon name={icon} size={28} />
            </span>
            <h2>{title}</h2>
            <p>{text}</p>
            <div className={styles.actions}>{children}</div>
        </div>
    );
}
