// Short notices at the bottom, some with an action such as Undo. Screen readers are told.
import { createStore, useStore } from "@/api/store";
import { Button, IconButton } from "./Button";
import styles from "./toast.module.css";

export interface Toast {
    id: number;
    text: string;
    kind: "info" | "error";
    action?: { label: string; run(): void };
}

const SHOWN_MS = 7000;
const MOST = 4;
const toasts = createStore<Toast[]>([]);
let count = 0;

export function dismiss(id: number) {
    toasts.update((list) => list.filter((toast) => toast.id !== id));
}

/** Errors stay until they are closed. Returns the id, for dismiss(). */
export function toast(
    text: string,
    options: Partial<Pick<Toast, "kind" | "action">> & { ms?: number } = {},
): number {
    const id = ++count;
    const kind = options.kind ?? "info";
    toasts.update((list) => [...list, { id, text, kind, action: options.action }].slice(-MOST));
    if (kind === "info") setTimeout(() => dismiss(id), options.ms ?? SHOWN_MS);
    return id;
}

/** The button that was pressed goes away: the focus is not lost with it. */
function leave(id: number) {
    dismiss(id);
    document.getElementById("main")?.focus();
}

export function Toasts() {
    const list = useStore(toasts);
    return (
        <div className={styles.list} role="region" aria-label="Notices">
            <div aria-live="polite">
                {list.map((one) => (
                    <div key={one.id} className={`${styles.toast} ${styles[one.kind]}`}>
                        <span className={styles.text}>{one.text}</span>
                        {one.action && (
                            <Button
                                kind="quiet"
                                onClick={() => {
                                    leave(one.id);
                                    one.action?.run();
                                }}
                            >
                                {one.action.label}
                            </Button>
                        )}
                        <IconButton
                            icon="close"
                            label="Dismiss"
                            tip="right"
                            onClick={() => leave(one.id)}
                        />
                    </div>
                ))}
            </div>
        </div>
    );
}
