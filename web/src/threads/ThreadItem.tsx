import type { Assistant } from "@langchain/langgraph-sdk";
import { memo } from "react";
import { nameOf } from "@/api/assistants";
import { colourOf } from "@/agents/colours";
import { formatRoute } from "@/app/route";
import { Icon } from "@/ui/icons";
import { fullDate, shortDate } from "./dates";
import { titleOfRecord, type ThreadRecord } from "./records";
import styles from "./ThreadItem.module.css";

/** The label of a thread's state, and its style. */
function markOf({ status, interrupts = {} }: ThreadRecord): [string, string | undefined] | null {
    if (status === "busy") return ["working", styles.busy];
    if (status === "error") return ["failed", styles.error];
    if (status !== "interrupted") return null;
    const hasInterrupt = Object.values(interrupts).some((open) => open.length > 0);
    return hasInterrupt ? ["needs a reply", styles.asking] : ["stopped", styles.stopped];
}

interface ItemProps {
    thread: ThreadRecord;
    agent: Assistant | undefined;
    now: Date;
    isCurrent: boolean;
}

export const ThreadItem = memo(function ThreadItem({ thread, agent, now, isCurrent }: ItemProps) {
    const { assistant_id, graph_id } = thread.metadata;
    const name = agent ? nameOf(agent) : graph_id;
    const mark = markOf(thread);
    const isShared = thread.role !== undefined && thread.role !== "owner";
    return (
        <li>
            <a
                className={styles.item}
                href={formatRoute({
                    view: "chat",
                    threadId: thread.thread_id,
                    at: null,
                    agent: null,
                })}
                aria-current={isCurrent ? "page" : undefined}
            >
                <span className={styles.title} dir="auto">
                    {titleOfRecord(thread)}
                </span>
                <span className={styles.under}>
                    {thread.unread !== undefined && (
                        <span className={styles.shared}>
                            <Icon name="people" size={12} /> room
                        </span>
                    )}
                    {name && thread.unread === undefined && (
                        <span className={styles.agent}>
                            <span
                                className={styles.dot}
                                style={{ background: colourOf(assistant_id ?? name) }}
                            />
                            <span className={styles.name}>{name}</span>
                        </span>
                    )}
                    {isShared && thread.unread === undefined && (
                        <span className={styles.shared}>
                            <Icon name="people" size={12} /> shared
                        </span>
                    )}
                    {thread.unread ? (
                        <span className={`${styles.mark} ${styles.unread}`}>
                            {thread.unread} new
                        </span>
                    ) : null}
                    {mark && <span className={`${styles.mark} ${mark[1]}`}>{mark[0]}</span>}
                    <time dateTime={thread.updated_at} title={fullDate(thread.updated_at)}>
                        {shortDate(thread.updated_at, now)}
                    </time>
                </span>
            </a>
        </li>
    );
});
