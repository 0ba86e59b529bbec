// Messages written while an answer streams: shown above the composer and sent one by one when the
// agent is idle. After a failure or an interrupt they wait for the user.
import { useCallback, useEffect, useRef, useState } from "react";
import { newId } from "@/api/ids";
import { Button, IconButton } from "@/ui/Button";
import { joinTexts, keepDraft, readDraft } from "./draft";
import type { Content } from "./agentChat";
import styles from "./Queued.module.css";
import { useOpenThread } from "./openThread";
import { textOf } from "./text";

export interface QueuedMessage {
    id: string;
    content: Content;
    assistantId: string | undefined;
}

/** Unsent messages become the draft when the user leaves the conversation. */
function useQueuedDraft(draftOf: string | null, list: QueuedMessage[]) {
    const now = useRef({ draftOf, list });
    now.current = { draftOf, list };
    useEffect(
        () => () => {
            const { draftOf, list } = now.current;
            if (list.length === 0) return;
            const texts = list.map(({ content }) => textOf(content));
            keepDraft(draftOf, joinTexts(...texts, readDraft(draftOf)));
        },
        [],
    );
}

export function useQueued(draftOf: string | null) {
    const { chats, isWorking, send } = useOpenThread();
    const [list, setList] = useState<QueuedMessage[]>([]);
    const isHeld = chats.some(
        (chat) => chat.failure !== null || chat.stopped !== null || chat.interrupts.length > 0,
    );
    const [isSending, setSending] = useState(false); // until that message is answered
    const isReady = !isSending && !isWorking && chats.every((chat) => chat.phase === "idle");

    const add = useCallback(
        (content: Content, assistantId: string | undefined) =>
            setList((before) => [...before, { id: newId(), content, assistantId }]),
        [],
    );
    const remove = useCallback(
        (id: string) => setList((before) => before.filter((one) => one.id !== id)),
        [],
    );
    const sendNow = useCallback(
        (one: QueuedMessage) => {
            remove(one.id);
            setSending(true);
            void send(one.content, one.assistantId).finally(() => setSending(false));
        },
        [remove, send],
    );
    const first = list[0];
    useEffect(() => {
        if (first && isReady && !isHeld) sendNow(first);
    }, [first, isReady, isHeld, sendNow]);
    useQueuedDraft(draftOf, list);
    return { list, add, remove, sendNow, canSend: isReady && isHeld };
}

export function Queued({ list, remove, sendNow, canSend }: ReturnType<typeof useQueued>) {
    return (
        <>
            <p className="visually-hidden" role="status">
                {list.length > 0 ? `${list.length} queued` : ""}
            </p>
            {list.length > 0 && (
                <ul className={styles.list} aria-label="Queued messages">
                    {list.map((one, at) => (
                        <li key={one.id} className={styles.item}>
                            <span className={styles.mark}>Queued</span>
                            <span className={styles.text} dir="auto">
                                {textOf(one.content) || "Image"}
                            </span>
                            {canSend && at === 0 && (
                                <Button kind="quiet" onClick={() => sendNow(one)}>
                                    Send now
                                </Button>
                            )}
                            <IconButton
                                icon="close"
                                label="Remove from the queue"
                                tip="right"
                                onClick={() => remove(one.id)}
                            />
                        </li>
                    ))}
                </ul>
            )}
        </>
    );
}
