// Open reply forms: while one is open, the composer does not take the reply.
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
