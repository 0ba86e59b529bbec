// A modal dialog on the browser's <dialog>: it traps the focus, closes with Escape, and returns the
// focus.
import { useId, useLayoutEffect, useRef, type ReactNode } from "react";
import { IconButton } from "./Button";
import styles from "./Dialog.module.css";

interface DialogProps {
    title: string;
    onClose(): void;
    children: ReactNode;
    /** Buttons, at the end. */
    actions?: ReactNode;
    isWide?: boolean;
}

export function Dialog({ title, onClose, children, actions, isWide = false }: DialogProps) {
    const ref = useRef<HTMLDialogElement>(null);
    const id = useId();

    // Close it before removal: only then does the browser return the focus.
    useLayoutEffect(() => {
        const dialog = ref.current;
        if (dialog && !dialog.open) dialog.showModal();
        return () => dialog?.close();
    }, []);

    return (
        <dialog
            ref={ref}
            className={`${styles.dialog} ${isWide ? styles.wide : ""}`}
            aria-labelledby={id}
            onCancel={(event) => {
                event.preventDefault();
                onClose();
            }}
            onClick={(event) => {
                if (event.target === ref.current) onClose(); // the backdrop
            }}
        >
            <div className={styles.box}>
                <header className={styles.head}>
                    <h2 id={id}>{title}</h2>
                    <IconButton icon="close" label="Close" tip="right" onClick={onClose} />
                </header>
                <div className={styles.body}>{children}</div>
                {actions && <footer className={styles.actions}>{actions}</footer>}
            </div>
        </dialog>
    );
}
