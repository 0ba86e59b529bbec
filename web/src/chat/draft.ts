// Unsent drafts by conversation, for the life of the tab.
import { useEffect, useRef } from "react";
import { keep, readStored } from "@/api/storage";

const KEY = "heddle:draft";

const keyOf = (threadId: string | null) => `${KEY}:${threadId ?? "new"}`;

export const readDraft = (threadId: string | null) =>
    readStored("sessionStorage", keyOf(threadId)) ?? "";

export const keepDraft = (threadId: string | null, text: string) =>
    keep("sessionStorage", keyOf(threadId), text || null);

/** Keeps the draft; it moves to the thread when that is created. */
export function useDraft(threadId: string | null, text: string) {
    const keptFor = useRef(threadId);
    useEffect(() => {
        if (keptFor.current !== threadId) keepDraft(keptFor.current, "");
        keptFor.current = threadId;
        keepDraft(threadId, text);
    }, [threadId, text]);
}

/** Joins texts with an empty line; empty texts add nothing. */
export const joinTexts = (...texts: string[]) => texts.filter((text) => text.trim()).join("\n\n");
