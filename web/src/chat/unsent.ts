// When the user leaves a conversation, the text of its unsent messages becomes its draft.
import { useEffect, useRef, type RefObject } from "react";
import { session } from "@/api/session";
import { identityOf } from "@/signin/identity";
import type { Now } from "./actions";
import { joinTexts, keepDraft, readDraft } from "./draft";
import { textOf } from "./text";

const person = () => identityOf(session.get().token);

export function useUnsentDraft(now: RefObject<Now>) {
    const whose = useRef(person()).current;
    useEffect(
        () => () => {
            const { unsent, options } = now.current;
            if (!unsent || person() !== whose) return; // no drafts are kept after sign-out
            const draftOf = options.exists ? options.threadId : null;
            const texts = unsent.added.map((message) => textOf(message.content));
            keepDraft(draftOf, joinTexts(...texts, readDraft(draftOf)));
        },
        [now, whose],
    );
}
