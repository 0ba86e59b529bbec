// Shows that the server is unreachable or slow. Drafts are kept until it is back.
import { useEffect, useState } from "react";
import { connection } from "@/api/connection";
import { createStore, useStore } from "@/api/store";
import { Icon } from "@/ui/icons";
import styles from "./ConnectionBanner.module.css";

/** True while the device has no network. */
const hasNetwork = createStore(navigator.onLine);
window.addEventListener("online", () => hasNetwork.set(true));
window.addEventListener("offline", () => hasNetwork.set(false));

const BACK_MS = 3000;

/** True for a moment after the server is reachable again. */
function useIsBack(isLost: boolean): boolean {
    const [isBack, setBack] = useState(false);
    const [wasLost, setWasLost] = useState(isLost);
    if (wasLost !== isLost) {
        setWasLost(isLost);
        setBack(!isLost);
    }
    useEffect(() => {
        if (!isBack) return;
        const timer = setTimeout(() => setBack(false), BACK_MS);
        return () => clearTimeout(timer);
    }, [isBack]);
    return isBack;
}

export function ConnectionBanner() {
    const isLost = useStore(connection) === "lost";
    const isBack = useIsBack(isLost);
    const hasNet = useStore(hasNetwork);
    const text = hasNet
        ? "The server can't be reached. Reconnecting…"
        : "You are offline. Nothing is lost: the page reconnects when you are back online.";
    return (
        <div role="status" aria-live="polite">
            {isLost && (
                <p className={`${styles.banner} ${styles.lost}`}>
                    <Icon name="warning" size={16} /> {text}
                </p>
            )}
            {isBack && (
                <p className={`${styles.banner} ${styles.back}`}>
                    <Icon name="check" size={16} /> Reconnected
                </p>
            )}
        </div>
    );
}
