// The inbox: messages that mention the user, across rooms.
import { useEffect, useState } from "react";
import chatStyles from "@/app/ChatView.module.css";
import { reasonOf } from "@/api/client";
import { messageHash } from "@/app/route";
import { fullDate, shortDate } from "@/threads/dates";
import { Button, IconButton } from "@/ui/Button";
import { getMentions } from "./api";
import styles from "./Panels.module.css";
import { excerptOf } from "./text";
import type { Mention } from "./types";

const PAGE = 50;

export function MentionsView({ onMenu }: { onMenu(): void }) {
    const [list, setList] = useState<Mention[] | null>(null);
    const [hasMore, setMore] = useState(false);
    const [problem, setProblem] = useState<string | null>(null);
    const load = (before?: string) => {
        setProblem(null);
        getMentions(PAGE, before).then(
            (page) => {
                setList((known) => (before ? [...(known ?? []), ...page] : page));
                setMore(page.length === PAGE);
            },
            (error: unknown) => setProblem(reasonOf(error)),
        );
    };
    useEffect(() => load(), []);
    useEffect(() => {
        document.title = "Mentions · Heddle";
    }, []);
    return (
        <>
            <header className={chatStyles.head}>
                <IconButton
                    icon="menu"
                    label="Conversations"
                    tip="left"
                    className={chatStyles.menu}
                    onClick={onMenu}
                />
                <h1 className={styles.title}>Mentions</h1>
            </header>
            <div className={styles.inbox}>
                {problem && (
                    <p className={styles.problem} role="alert">
                        Could not load the mentions. {problem}{" "}
                        <Button icon="retry" onClick={() => load()}>
                            Try again
                        </Button>
                    </p>
                )}
                {!list && !problem && <p role="status">Loading…</p>}
                {list?.length === 0 && (
                    <p className={styles.soft}>
                        Messages that mention you with @ in a room appear here.
                    </p>
                )}
                <ul className={styles.list}>
                    {list?.map(({ thread_id, created_at, message }) => (
                        <li key={`${thread_id} ${message.id}`}>
                            <a className={styles.found} href={messageHash(thread_id, message.id)}>
                                <span>
                                    <strong>{message.sender.name}</strong>
                                    <time dateTime={created_at} title={fullDate(created_at)}>
                                        {shortDate(created_at, new Date())}
                                    </time>
                                </span>
                                {excerptOf(message)}
                            </a>
                        </li>
                    ))}
                </ul>
                {hasMore && (
                    <Button kind="quiet" onClick={() => load(list?.at(-1)?.created_at)}>
                        Show more
                    </Button>
                )}
            </div>
        </>
    );
}
