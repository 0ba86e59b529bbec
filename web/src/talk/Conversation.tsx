// What was said, oldest first.
import { useEffect, useMemo, useRef } from "react";
import { nameOf, useAssistants } from "@/api/assistants";
import { Trouble, useTrouble } from "@/threads/Trouble";
import { Button } from "@/ui/Button";
import styles from "./Conversation.module.css";
import { useFollow } from "./follow";
import { LineEnd } from "./LineEnd";
import { useRoom, type Room } from "./room";
import { rowsOf } from "./rows";
import { Said } from "./Said";
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

/** Who is writing, and that an answer is complete: once each, not every piece of it. */
function useNews({ lines }: Room): string {
    const { list } = useAssistants();
    const news = useRef("");
    const wasWorking = useRef(false);
    const working = lines.find((line) => line.phase === "working" || line.phase === "stopping");
    if (working) {
        const name = nameOf(list.find((one) => one.assistant_id === working.assistantId));
        news.current = `${name} is writing`;
        wasWorking.current = true;
    } else if (wasWorking.current) {
        const isWhole = lines.every(
            (line) => !line.failure && !line.stopped && line.interrupts.length === 0,
        );
        news.current = isWhole ? "Answer complete" : ""; // what else there is says so itself
        wasWorking.current = false;
    }
    return news.current;
}

export function Conversation() {
    const room = useRoom();
    const { entries, lines, isLoading, exists } = room;
    const isTroubled = useTrouble();
    const news = useNews(room);
    const rows = useMemo(() => rowsOf(entries), [entries]);
    const { box, content, isAway, goToEnd } = useFollow(rows.length > 0);
    const hasMany = useMemo(
        () => new Set(entries.map((entry) => entry.line.assistantId)).size > 1,
        [entries],
    );
    const isReading =
        isLoading || (entries.length === 0 && lines.some((line) => line.phase === "loading"));
    const isEmpty =
        !isReading &&
        !isTroubled &&
        rows.length === 0 &&
        lines.every((line) => line.phase === "idle" && !line.failure);

    // What one says oneself is seen, wherever one was.
    const said = entries.filter((entry) => entry.message.type === "human").length;
    const sent = useRef(said);
    useEffect(() => {
        if (said > sent.current) goToEnd();
        sent.current = said;
    }, [said, goToEnd]);

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
                    {isTroubled && <Trouble />}
                    {isReading && !isTroubled && <Skeleton />}
                    {isEmpty && !(exists && isLoading) && <Welcome />}
                    {rows.length > 0 && <h2 className="visually-hidden">Messages</h2>}
                    {rows.map((row) => (
                        <Said
                            key={row.entry.key}
                            row={row}
                            hasMany={hasMany}
                            isWriting={
                                row.entry.line.writing !== null &&
                                row.entry.line.writing === row.entry.message.id
                            }
                        />
                    ))}
                    {!isTroubled &&
                        lines.map((line) => <LineEnd key={line.assistantId} line={line} />)}
                </div>
            </div>
            {isAway && rows.length > 0 && (
                <Button icon="down" className={styles.jump} onClick={() => goToEnd(true)}>
                    Jump to the latest
                </Button>
            )}
            <p className="visually-hidden" role="status" aria-live="polite">
                {news}
            </p>
        </div>
    );
}
