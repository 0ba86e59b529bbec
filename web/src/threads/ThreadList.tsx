// The conversations, grouped by day; scrolling to the end loads more.
import { Fragment, useEffect, useMemo, useRef, useState } from "react";
import { useAssistants } from "@/api/assistants";
import { reasonOf } from "@/api/client";
import { connection } from "@/api/connection";
import { session } from "@/api/session";
import { useStore } from "@/api/store";
import { useRoute } from "@/app/route";
import { Button } from "@/ui/Button";
import { groupOf, type Group } from "./dates";
import { loadMore, refreshList, useThreadsList } from "./list";
import type { ThreadRecord } from "./records";
import { useHidden } from "./removal";
import styles from "./ThreadList.module.css";
import { ThreadItem } from "./ThreadItem";

const BUSY_MS = 3000;
const CLOCK_MS = 30_000;

/** The current time for relative dates, updated while the page is visible. */
function useNow(): Date {
    const [now, setNow] = useState(() => new Date());
    useEffect(() => {
        const timer = setInterval(() => {
            if (document.visibilityState === "visible") setNow(new Date());
        }, CLOCK_MS);
        return () => clearInterval(timer);
    }, []);
    return now;
}

/**
 * The list is loaded with the page, when the page becomes visible again, and frequently while an
 * agent is running.
 */
function useFreshness(threads: ThreadRecord[]) {
    const { token } = useStore(session);
    const state = useStore(connection);
    const isBusy = threads.some((thread) => thread.status === "busy");
    useEffect(() => {
        if (state === "online") refreshList();
    }, [token, state]);
    useEffect(() => {
        const look = () => {
            if (document.visibilityState === "visible") refreshList();
        };
        document.addEventListener("visibilitychange", look);
        const timer = isBusy ? setInterval(look, BUSY_MS) : undefined;
        return () => {
            document.removeEventListener("visibilitychange", look);
            clearInterval(timer);
        };
    }, [isBusy]);
}

function Skeleton() {
    return (
        <div className={styles.skeleton} aria-hidden="true">
            {[80, 60, 70, 45].map((width) => (
                <div key={width} className={styles.bone}>
                    <span style={{ width: `${width}%` }} />
                    <span style={{ width: `${width / 2}%` }} />
                </div>
            ))}
        </div>
    );
}

function End({ hasMore, isLoading }: { hasMore: boolean; isLoading: boolean }) {
    const mark = useRef<HTMLDivElement>(null);
    useEffect(() => {
        if (!mark.current || !hasMore || isLoading) return;
        const watcher = new IntersectionObserver((seen) => {
            if (seen.some((one) => one.isIntersecting)) loadMore();
        });
        watcher.observe(mark.current);
        return () => watcher.disconnect();
    }, [hasMore, isLoading]);
    if (!hasMore) return null;
    return (
        <div ref={mark} className={styles.end}>
            <Button kind="quiet" disabled={isLoading} onClick={loadMore}>
                {isLoading ? "Loading…" : "Show more"}
            </Button>
        </div>
    );
}

function Nothing({ text }: { text: string }) {
    return (
        <p className={styles.nothing}>
            {text
                ? `No conversation has “${text}” in its title or messages.`
                : "Your conversations will appear here."}
        </p>
    );
}

export function ThreadList() {
    const { text, threads, hasMore, loading, error } = useThreadsList();
    const hidden = useHidden();
    const route = useRoute();
    const { list } = useAssistants();
    const now = useNow();
    useFreshness(threads);

    const shown = useMemo(
        () => threads.filter((thread) => !hidden.has(thread.thread_id)),
        [threads, hidden],
    );
    const agents = useMemo(() => new Map(list.map((one) => [one.assistant_id, one])), [list]);
    const current = route.view === "chat" ? route.threadId : null;
    const isEmpty = shown.length === 0;
    const groups = new Map<Group, ThreadRecord[]>();
    for (const thread of shown) {
        const group = groupOf(thread.updated_at, now);
        groups.set(group, [...(groups.get(group) ?? []), thread]);
    }

    return (
        <div className={styles.list} aria-busy={loading === "first"}>
            {[...groups].map(([group, members]) => (
                <Fragment key={group}>
                    <h2 id={`threads-${group}`}>{group}</h2>
                    <ul aria-labelledby={`threads-${group}`}>
                        {members.map((thread) => (
                            <ThreadItem
                                key={thread.thread_id}
                                thread={thread}
                                now={now}
                                isCurrent={thread.thread_id === current}
                                agent={agents.get(thread.metadata.assistant_id ?? "")}
                            />
                        ))}
                    </ul>
                </Fragment>
            ))}
            {loading === "first" && isEmpty && <Skeleton />}
            {loading === null && !error && isEmpty && !hasMore && <Nothing text={text} />}
            {error !== null && (
                <div className={styles.error} role="alert">
                    <p>Could not load the conversations. {reasonOf(error)}</p>
                    <Button icon="retry" onClick={refreshList}>
                        Try again
                    </Button>
                </div>
            )}
            <End hasMore={hasMore && error === null} isLoading={loading !== null} />
            <p className="visually-hidden" role="status">
                {text && loading === null
                    ? `${shown.length}${hasMore ? " or more" : ""} found`
                    : ""}
            </p>
        </div>
    );
}
