// Media queries: window size and pointer.
import { useCallback, useSyncExternalStore } from "react";

/** The sidebar lies over the page. */
export const narrow = window.matchMedia("(max-width: 50rem)");
/** A drawer covers the conversation. */
export const small = window.matchMedia("(max-width: 40rem)");
/** Touch input with an on-screen keyboard. */
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
