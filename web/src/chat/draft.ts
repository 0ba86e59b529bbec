// What was typed and not sent, by conversation, for as long as the tab lives.
import { useEffect, useRef } from "react";
import { keep, readKept } from "@/api/storage";

const KEY = "heddle:draft";

const keyOf = (threadId: string | null) => `${KEY}:${threadId ?? "new"}`;

export const readDraft = (threadId: string | null) =>
    readKept("sessionStorage", keyOf(threadId)) ?? "";

export const keepDraft = (threadId: string | null, text: string) =>
    keep("sessionStorage", keyOf(threadId), text || null);

/** Keeps what is typed; with the conversation, when that is made meanwhile. */
export function useDraft(threadId: string | null, text: string) {
    const keptFor = useRef(threadId);
    useEffect(() => {
        if (keptFor.current !== threadId) keepDraft(keptFor.current, "");
        keptFor.current = threadId;
        keepDraft(threadId, text);
    }, [threadId, text]);
}

/** One text above the other; an empty one takes no room. */
export const joinTexts = (...texts: string[]) => texts.filter((text) => text.trim()).join("\n\n");
