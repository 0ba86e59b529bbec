// Details of a conversation: size, dates, time to live, pruning, participants.
import { useCallback, useEffect, useState, type ReactNode } from "react";
import { reasonOf } from "@/api/client";
import { session } from "@/api/session";
import { useStore } from "@/api/store";
import { Button } from "@/ui/Button";
import { Dialog } from "@/ui/Dialog";
import { CopyButton } from "./CopyButton";
import { fullDate, sizeOf } from "./dates";
import { getDetails, type Details } from "./details";
import styles from "./DetailsDialog.module.css";
import { Expiry } from "./Expiry";
import { Invitations } from "./Invitations";
import { Participants } from "./Participants";
import { Prune } from "./Prune";
import { titleOfRecord, type ThreadRecord } from "./records";

export function Section({ title, children }: { title: string; children: ReactNode }) {
    return (
        <section className={styles.section}>
            <h3>{title}</h3>
            {children}
        </section>
    );
}

function Facts({ record, details }: { record: ThreadRecord; details: Details | null }) {
    const usage = details?.usage;
    return (
        <dl className={styles.facts}>
            <dt>Size</dt>
            <dd>
                {details
                    ? usage
                        ? `${sizeOf(usage.bytes)} in ${usage.checkpoints} checkpoints`
                        : "unknown"
                    : "…"}
            </dd>
            <dt>Created</dt>
            <dd>{fullDate(record.created_at)}</dd>
            <dt>Last change</dt>
            <dd>{fullDate(record.updated_at)}</dd>
            <dt>ID</dt>
            <dd className={styles.id}>
                <code>{record.thread_id}</code>
                <CopyButton text={record.thread_id} label="Copy the ID" />
            </dd>
        </dl>
    );
}

export function DetailsDialog({ record, onClose }: { record: ThreadRecord; onClose(): void }) {
    const { token } = useStore(session);
    const [details, setDetails] = useState<Details | null>(null);
    const [problem, setProblem] = useState<string | null>(null);
    const { thread_id: threadId, role } = record;
    const isOwner = role === undefined || role === "owner";

    const load = useCallback(() => {
        setProblem(null);
        getDetails(threadId).then(setDetails, (error: unknown) => setProblem(reasonOf(error)));
    }, [threadId]);
    useEffect(load, [load]);

    return (
        <Dialog title={titleOfRecord(record)} onClose={onClose} isWide>
            {problem && (
                <div className={styles.problem} role="alert">
                    <p>Could not load the details. {problem}</p>
                    <Button icon="retry" onClick={load}>
                        Try again
                    </Button>
                </div>
            )}
            <Facts record={record} details={details} />
            {isOwner && details && <Expiry threadId={threadId} ttl={details.ttl} onChange={load} />}
            {isOwner && <Prune threadId={threadId} onPruned={load} />}
            {token ? (
                <>
                    <Participants threadId={threadId} isOwner={isOwner} />
                    {isOwner && <Invitations threadId={threadId} />}
                </>
            ) : (
                <Section title="Sharing">
                    <p className={styles.soft}>
                        This server has no sign-in: anyone who can reach it can read all
                        conversations.
                    </p>
                </Section>
            )}
        </Dialog>
    );
}
