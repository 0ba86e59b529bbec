// Stands where something can't be shown: why, and where to go from here.
import type { ReactNode } from "react";
import { Icon, type IconName } from "./icons";
import styles from "./ErrorState.module.css";

interface Props {
    icon: IconName;
    title: string;
    text: string;
    /** Buttons: what can be done about it. */
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
            <div className={styles.ways}>{children}</div>
        </div>
    );
}
