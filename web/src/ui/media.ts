// What the window is like, and what it is used with.
import { useCallback, useSyncExternalStore } from "react";

/** The list of conversations lies above the page. */
export const narrow = window.matchMedia("(max-width: 50rem)");
/** A drawer covers the conversation. */
export const small = window.matchMedia("(max-width: 40rem)");
/** Fingers, and a keyboard on the screen. */
export const touch = window.matchMedia("(pointer: coarse)");

export function useMatches(query: MediaQueryList): boolean {
    const subscribe = useCallback(
        (onChange: () => void) => {
            query.addEventListener("change", onChange);
            return () => query.removeEventListener("change", onChange);
        },
        [query],
    );
    return useSyncExternalStore(subscribe, () => query.matches);
}
