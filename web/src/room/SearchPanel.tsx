// Search in the messages of the room.
import { useEffect, useState } from "react";
import { reasonOf } from "@/api/client";
import { useStore } from "@/api/store";
import { fullDate, shortDate } from "@/threads/dates";
import { Search } from "@/ui/Search";
import { getMessages } from "./api";
import { useSession } from "./context";
import styles from "./Panels.module.css";
import { excerptOf } from "./text";
import type { ChatMessage } from "./types";

const LIMIT = 50;
const WAIT_MS = 200;

export function SearchPanel({ onGo }: { onGo(id: string): void }) {
    const session = useSession();
    const newest = useStore(session.store).state.messages.at(-1)?.seq;
    const [text, setText] = useState("");
    const [found, setFound] = useState<ChatMessage[] | null>(null);
    const [problem, setProblem] = useState<string | null>(null);
    const query = text.trim();

    useEffect(() => {
        setProblem(null);
        if (!query) return setFound(null);
        const controller = new AbortController();
        const timer = setTimeout(() => {
            getMessages(
                session.threadId,
                { text: query, limit: LIMIT, order: "desc" },
                controller.signal,
            ).then(setFound, (error: unknown) => {
                if (!controller.signal.aborted) setProblem(reasonOf(error));
            });
        }, WAIT_MS);
        return () => {
            clearTimeout(timer);
            controller.abort();
        };
    }, [query, session.threadId, newest]);

    return (
        <>
            <Search label="Search in this room" text={text} onText={setText} isLandmark={false} />
            {problem && (
                <p className={styles.problem} role="alert">
                    {problem}
                </p>
            )}
            <p className={found ? styles.count : "visually-hidden"} role="status">
                {found &&
                    (found.length === 0
                        ? `No message has “${query}”.`
                        : `${found.length}${found.length === LIMIT ? " or more" : ""} found`)}
            </p>
            <ul className={styles.list}>
                {found?.map((message) => (
                    <li key={message.id}>
                        <button
                            type="button"
                            className={styles.found}
                            onClick={() => onGo(message.id)}
                        >
                            <span>
                                <strong>{message.sender.name}</strong>
                                <time
                                    dateTime={message.created_at}
                                    title={fullDate(message.created_at)}
                                >
                                    {shortDate(message.created_at, new Date())}
                                </time>
                            </span>
                            {excerptOf(message)}
                        </button>
                    </li>
                ))}
            </ul>
        </>
    );
}
