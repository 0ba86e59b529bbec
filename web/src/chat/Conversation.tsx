// The messages, oldest first.
import { useEffect, useMemo, useRef } from "react";
import { nameOf, useAssistants } from "@/api/assistants";
import { ThreadError, useThreadError } from "@/threads/ThreadError";
import { Button } from "@/ui/Button";
import styles from "./Conversation.module.css";
import { useFollow } from "./follow";
import { ChatStatus } from "./ChatStatus";
import { useOpenThread, type OpenThread } from "./openThread";
import { rowsOf } from "./rows";
import { MessageRow } from "./MessageRow";
import { Welcome } from "./Welcome";

function Skeleton() {
    return (
        <div className={styles.skeleton} role="status">
            <span className="visually-hidden">Loading the conversation</span>
            {[40, 85, 70, 30, 90].map((width, at) => (
                <span
                    key={at}
                    className={styles.bone}
                    style={{ width: `${width}%` }}
                    data-own={at % 3 === 0 || undefined}
                />
            ))}
        </div>
    );
}

/** Announces the writing agent and a complete answer once each, not every chunk. */
function useAnnouncement({ chats }: OpenThread): string {
    const { list } = useAssistants();
    const announcement = useRef("");
    const wasWorking = useRef(false);
    const working = chats.find((chat) => chat.phase === "working" || chat.phase === "stopping");
    if (working) {
        const name = nameOf(list.find((one) => one.assistant_id === working.assistantId));
        announcement.current = `${name} is writing`;
        wasWorking.current = true;
    } else if (wasWorking.current) {
        const isWhole = chats.every(
            (chat) => !chat.failure && !chat.stopped && chat.interrupts.length === 0,
        );
        // errors, stops and requests announce themselves
        announcement.current = isWhole ? "Answer complete" : "";
        wasWorking.current = false;
    }
    return announcement.current;
}

export function Conversation() {
    const thread = useOpenThread();
    const { entries, chats, isLoading, exists } = thread;
    const hasError = useThreadError();
    const announcement = useAnnouncement(thread);
    const rows = useMemo(() => rowsOf(entries), [entries]);
    const { box, content, isScrolledUp, goToEnd } = useFollow(rows.length > 0);
    const hasMany = useMemo(
        () => new Set(entries.map((entry) => entry.chat.assistantId)).size > 1,
        [entries],
    );
    const isReading =
        isLoading || (entries.length === 0 && chats.some((chat) => chat.phase === "loading"));
    const isEmpty =
        !isReading &&
        !hasError &&
        rows.length === 0 &&
        chats.every((chat) => chat.phase === "idle" && !chat.failure);

    // The user's own message scrolls into view.
    const humanCount = entries.filter((entry) => entry.message.type === "human").length;
    const sent = useRef(humanCount);
    useEffect(() => {
        if (humanCount > sent.current) goToEnd();
        sent.current = humanCount;
    }, [humanCount, goToEnd]);

    return (
        <div className={styles.frame}>
            <div
                ref={box}
                className={styles.log}
                role="log"
                aria-label="Messages"
                aria-live="off"
                aria-busy={isReading}
                tabIndex={0}
            >
                <div ref={content} className={styles.content}>
                    {hasError && <ThreadError />}
                    {isReading && !hasError && <Skeleton />}
                    {isEmpty && !(exists && isLoading) && <Welcome />}
                    {rows.length > 0 && <h2 className="visually-hidden">Messages</h2>}
                    {rows.map((row) => (
                        <MessageRow
                            key={row.entry.key}
                            row={row}
                            hasMany={hasMany}
                            isWriting={
                                row.entry.chat.writing !== null &&
                                row.entry.chat.writing === row.entry.message.id
                            }
                        />
                    ))}
                    {!hasError &&
                        chats.map((chat) => <ChatStatus key={chat.assistantId} chat={chat} />)}
                </div>
            </div>
            {isScrolledUp && rows.length > 0 && (
                <Button icon="down" className={styles.jump} onClick={() => goToEnd(true)}>
                    Jump to the latest
                </Button>
            )}
            <p className="visually-hidden" role="status" aria-live="polite">
                {announcement}
            </p>
        </div>
    );
}
