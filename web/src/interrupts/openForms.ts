// Boxes for an answer that are open in a question: while one is, the composer is not a second one.
import { useEffect } from "react";
import { createStore, useStore } from "@/api/store";

const open = createStore(0);

export const useHasOpenForm = () => useStore(open) > 0;

export function useOpenForm(isOpen: boolean) {
    useEffect(() => {
        if (!isOpen) return;
        open.update((count) => count + 1);
        return () => open.update((count) => count - 1);
    }, [isOpen]);
}
