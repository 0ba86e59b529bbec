// Says that the server is gone, or slow; what is being written goes on when it is back.
import { useEffect, useState } from "react";
import { connection } from "@/api/connection";
import { createStore, useStore } from "@/api/store";
import { Icon } from "@/ui/icons";
import styles from "./ConnectionBanner.module.css";

/** Whether the device itself is without a network. */
const hasNetwork = createStore(navigator.onLine);
window.addEventListener("online", () => hasNetwork.set(true));
window.addEventListener("offline", () => hasNetwork.set(false));

const BACK_MS = 3000;

/** True for a moment after the server was found again. */
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
        ? "The server can't be reached. Trying again…"
        : "You are offline. Nothing is lost: it goes on when you are back.";
    return (
        <div role="status" aria-live="polite">
            {isLost && (
                <p className={`${styles.banner} ${styles.lost}`}>
                    <Icon name="warning" size={16} /> {text}
                </p>
            )}
            {isBack && (
                <p className={`${styles.banner} ${styles.back}`}>
                    <Icon name="check" size={16} /> Connected again
                </p>
            )}
        </div>
    );
}
