// The panel at the right; on a phone it covers the conversation.
import { useEffect, useRef, type ReactNode } from "react";
import { IconButton } from "@/ui/Button";
import styles from "./Drawer.module.css";

export type DrawerName = "tree" | "state" | "graph";

export function Drawer({
    title,
    onClose,
    children,
}: {
    title: string;
    onClose(): void;
    children: ReactNode;
}) {
    const heading = useRef<HTMLHeadingElement>(null);
    useEffect(() => heading.current?.focus(), [title]);
    return (
        <aside
            className={styles.drawer}
            aria-label={title}
            onKeyDown={(event) => {
                if (event.key === "Escape") onClose();
            }}
        >
            <header className={styles.head}>
                <h2 ref={heading} tabIndex={-1}>
                    {title}
                </h2>
                <IconButton
                    icon="close"
                    label={`Close ${title.toLowerCase()}`}
                    tip="right"
                    onClick={onClose}
                />
            </header>
            <div className={styles.body}>{children}</div>
        </aside>
    );
}
