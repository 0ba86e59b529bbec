import { useEffect, type RefObject } from "react";

/** Calls `leave` on a pointer press or focus outside of `root` while `isOpen`. */
export function useOutside(
    root: RefObject<HTMLElement | null>,
    isOpen: boolean,
    leave: () => void,
): void {
    useEffect(() => {
        if (!isOpen) return;
        const outside = (event: Event) => {
            if (!root.current?.contains(event.target as Node)) leave();
        };
        document.addEventListener("pointerdown", outside);
        document.addEventListener("focusin", outside);
        return () => {
            document.removeEventListener("pointerdown", outside);
            document.removeEventListener("focusin", outside);
        };
    });
}
