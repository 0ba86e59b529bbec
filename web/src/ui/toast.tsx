// Short notices at the bottom, some with an action such as Undo, announced to screen readers.
import { createStore, useStore } from "@/api/store";
import { Button, IconButton } from "./Button";
import styles from "./toast.module.css";

export interface Toast {
    id: number;
    text: string;
    kind: "info" | "error";
    action?: { label: string; run(): void };
}

interface Options extends Partial<Pick<Toast, "kind" | "action">> {
    ms?: number;
    /** Called when the notice expires or is closed: undo is no longer possible. */
    onOver?(): void;
}

const SHOWN_MS = 7000;
const MOST = 4;
const toasts = createStore<Toast[]>([]);
/** The remaining time of each notice, and its end callback. */
const times = new Map<number, { ms: number; onOver?(): void }>();
const timers = new Map<number, ReturnType<typeof setTimeout>>();
let isHeld = false;
let count = 0;

/** Notices stay while the pointer or the focus is on one. */
function hold(isOn: boolean) {
    isHeld = isOn;
    for (const timer of timers.values()) clearTimeout(timer);
    timers.clear();
    if (!isOn) for (const id of times.keys()) start(id);
}

function start(id: number) {
    const time = times.get(id);
    if (time)
        timers.set(
            id,
            setTimeout(() => end(id), time.ms),
        );
}

function end(id: number) {
    const time = times.get(id);
    dismiss(id);
    time?.onOver?.();
}

export function dismiss(id: number) {
    clearTimeout(timers.get(id));
    timers.delete(id);
    times.delete(id);
    toasts.update((list) => list.filter((toast) => toast.id !== id));
}

/** Errors stay until closed. Returns the id, for dismiss(). */
export function toast(text: string, options: Options = {}): number {
    const id = ++count;
    const kind = options.kind ?? "info";
    toasts.update((list) => [...list, { id, text, kind, action: options.action }].slice(-MOST));
    if (kind === "info") {
        times.set(id, { ms: options.ms ?? SHOWN_MS, onOver: options.onOver });
        if (!isHeld) start(id);
    }
    return id;
}

/** The pressed button is removed: keep the focus on the page. */
function leave(close: () => void) {
    close();
    hold(false); // the pointer is no longer on a removed notice
    document.getElementById("main")?.focus();
}

export function Toasts() {
    const list = useStore(toasts);
    return (
        <div className={styles.list} role="region" aria-label="Notices">
            <div aria-live="polite">
                {list.map((one) => (
                    <div
                        key={one.id}
                        className={`${styles.toast} ${styles[one.kind]}`}
                        onPointerEnter={() => hold(true)}
                        onPointerLeave={() => hold(false)}
                        onFocus={() => hold(true)}
                        onBlur={() => hold(false)}
                    >
                        <span className={styles.text}>{one.text}</span>
                        {one.action && (
                            <Button
                                kind="quiet"
                                onClick={() => {
                                    leave(() => dismiss(one.id));
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
                            onClick={() => leave(() => end(one.id))}
                        />
                    </div>
                ))}
            </div>
        </div>
    );
}
