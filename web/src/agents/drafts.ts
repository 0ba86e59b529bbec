// Unsaved changes. They survive navigation within the page; closing the page needs confirmation.
import { createStore, useStore } from "@/api/store";
import type { Draft } from "./draft";

export const NEW = "new";

const drafts = createStore<ReadonlyMap<string, Draft>>(new Map());

const warn = (event: BeforeUnloadEvent) => event.preventDefault();

drafts.subscribe(() => {
    if (drafts.get().size > 0) window.addEventListener("beforeunload", warn);
    else window.removeEventListener("beforeunload", warn);
});

export const useDrafts = () => useStore(drafts);

export const getDraft = (assistantId: string) => drafts.get().get(assistantId);

export function keepDraft(assistantId: string, draft: Draft | null) {
    drafts.update((before) => {
        const next = new Map(before);
        if (draft) next.set(assistantId, draft);
        else next.delete(assistantId);
        return next;
    });
}
