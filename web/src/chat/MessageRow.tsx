// One message. It renders again only when its data has changed.
import { memo, type ReactNode } from "react";
import { AgentBadge } from "@/agents/AgentBadge";
import { nameOf, useAssistants } from "@/api/assistants";
import { Turn } from "@/branches/Turn";
import { otherSender } from "@/room/me";
import { useAccess } from "@/threads/access";
import { CopyButton } from "@/threads/CopyButton";
import { Button, IconButton } from "@/ui/Button";
import { Icon } from "@/ui/icons";
import { joinTexts } from "./draft";
import { fill } from "./fill";
import type { AgentChat } from "./agentChat";
import { Markdown } from "./Markdown";
import { callsOf, isBlank, partsOf } from "./parts";
import { Picture } from "./Picture";
import { isStopped } from "./runOutcome";
import { useThreadSummary, type Entry } from "./openThread";
import type { Row } from "./rows";
import styles from "./MessageRow.module.css";
import { deepEqual } from "./deepEqual";
import { sentence } from "./text";
import { LoneResult, ToolCalls } from "./ToolCalls";

function Pictures({ images, isOwn }: { images: string[]; isOwn: boolean }) {
    if (images.length === 0) return null;
    const name = (at: number) =>
        `${isOwn ? "Image you sent" : "Image"}${images.length > 1 ? ` ${at + 1}` : ""}`;
    return (
        <div className={styles.pictures}>
            {images.map((address, at) => (
                <Picture key={at} address={address} name={name(at)} />
            ))}
        </div>
    );
}

function Others({ types }: { types: string[] }) {
    if (types.length === 0) return null;
    return <p className={styles.quiet}>Unsupported content: {[...new Set(types)].join(", ")}.</p>;
}

function Reasoning({ text, isOpen }: { text: string; isOpen: boolean }) {
    if (!text) return null;
    return (
        <details className={styles.reasoning}>
            <summary>{isOpen ? "Thinking…" : "Thoughts"}</summary>
            <Markdown text={text} isGrowing={isOpen} keepsLines />
        </details>
    );
}

/** A message that the server has not accepted: its content is kept. */
function Unsent({ chat }: { chat: AgentChat }) {
    const takeBack = () => {
        const all = chat.discard().map(partsOf);
        fill.set({
            text: joinTexts(...all.map((parts) => parts.text)),
            images: all.flatMap((parts) => parts.images),
            isEarlier: true,
        });
    };
    return (
        <div className={styles.unsent} role="alert">
            <p>
                <Icon name="warning" size={16} /> <strong>Not sent.</strong>{" "}
                {sentence(chat.failure?.reason ?? "")}
            </p>
            <div className={styles.actions}>
                <Button kind="quiet" onClick={takeBack}>
                    Back to the editor
                </Button>
                <Button icon="retry" onClick={() => void chat.resend()}>
                    Send again
                </Button>
            </div>
        </div>
    );
}

const NO_ANSWER: Record<string, string> = {
    error: "The agent failed here.",
    timeout: "The run timed out here.",
    interrupted: "The answer was stopped here.",
};

/** A failed or stopped turn stays visible when another message follows. */
function NoAnswer({ entry }: { entry: Entry }) {
    const { statuses } = useThreadSummary();
    const { failure, stopped } = entry.chat.broken.get(entry.message.id ?? "") ?? {};
    const partial = failure?.partial ?? stopped?.partial;
    const text = partial ? partsOf(partial).text : "";
    const status = statuses.get(entry.origin?.run_id ?? "") ?? "";
    const explanation = failure
        ? `The agent failed here. ${sentence(failure.reason)}`
        : stopped
          ? NO_ANSWER.interrupted
          : (NO_ANSWER[status] ?? "This message has no answer.");
    return (
        <div className={styles.broken}>
            {text && <Markdown text={text} isGrowing />}
            <p>
                <Icon name={failure || status === "error" ? "warning" : "stop"} size={16} />{" "}
                {explanation}
            </p>
        </div>
    );
}

function Human({ entry, to }: { entry: Entry; to: ReactNode }) {
    const parts = partsOf(entry.message);
    const isUnsent = entry.chat.unsent.has(entry.message.id ?? "");
    const bubble = (
        <>
            {to}
            <div className={styles.bubble} data-bubble data-unsent={isUnsent || undefined}>
                <Pictures images={parts.images} isOwn />
                {parts.text && <Markdown text={parts.text} keepsLines />}
                <Others types={parts.others} />
            </div>
        </>
    );
    return (
        <div className={styles.own}>
            {isUnsent ? (
                <>
                    {bubble}
                    <Unsent chat={entry.chat} />
                </>
            ) : (
                <Turn entry={entry}>{bubble}</Turn>
            )}
        </div>
    );
}

/** A message from one agent to another, as a tool call. */
function Between({ entry }: { entry: Entry }) {
    return (
        <details className={styles.reasoning}>
            <summary>Called by another agent</summary>
            <Markdown text={partsOf(entry.message).text} keepsLines />
        </details>
    );
}

/** Requests another answer to the same message. */
function Regenerate({ entry }: { entry: Entry }) {
    const { chat, message, origin } = entry;
    const { canWrite } = useAccess();
    if (!canWrite || !message.id || origin?.fork_checkpoint_id === null) return null;
    const id = message.id;
    const isBusy = chat.phase !== "idle";
    return (
        <IconButton
            icon="retry"
            label="Regenerate"
            tip="right"
            aria-disabled={isBusy}
            onClick={() => !isBusy && void chat.retry(id).catch(() => undefined)}
        />
    );
}

function Agent({
    entry,
    results,
    answers,
    isWriting,
}: {
    entry: Entry;
    results: Row["results"];
    answers: Row["answers"];
    isWriting: boolean;
}) {
    const { chat, message } = entry;
    const parts = partsOf(message);
    const isRunning = chat.phase === "working" || chat.phase === "stopping";
    const pending = chat.isOnOtherBranch
        ? "none"
        : isRunning
          ? "running"
          : chat.interrupts.length > 0
            ? "waiting"
            : "none";
    return (
        <div className={styles.answer} aria-live="off">
            <Reasoning text={parts.reasoning} isOpen={isWriting && !parts.text} />
            {parts.text && <Markdown text={parts.text} isGrowing={isWriting} />}
            <Pictures images={parts.images} isOwn={false} />
            <Others types={parts.others} />
            {!isWriting && !isRunning && isBlank(message) && (
                <p className={styles.quiet}>The answer is empty.</p>
            )}
            <ToolCalls message={message} results={results} pending={pending} />
            {isStopped(message) && (
                <p className={styles.stopped}>
                    <Icon name="stop" size={16} /> Stopped
                </p>
            )}
            {(parts.text || answers) && !isWriting && (
                <div className={styles.tools}>
                    {parts.text && <CopyButton text={parts.text} label="Copy answer" />}
                    {answers && <Regenerate entry={answers} />}
                </div>
            )}
        </div>
    );
}

interface MessageRowProps {
    row: Row;
    isWriting: boolean;
    /** Several agents take part: messages show their addressee. */
    hasMany: boolean;
}

function MessageRowView({ row, isWriting, hasMany }: MessageRowProps) {
    const { entry, results, showsName } = row;
    const { chat, message, origin } = entry;
    const { list } = useAssistants();
    const name = nameOf(list.find((one) => one.assistant_id === chat.assistantId));
    if (message.type === "human" && !origin?.delegated) {
        const other = otherSender(origin?.sender);
        const to =
            hasMany || other ? (
                <p className={styles.to}>
                    {other && <strong>{other.name || other.id}</strong>}
                    {other && hasMany && " "}
                    {hasMany && (
                        <>
                            to <AgentBadge assistantId={chat.assistantId} size="small" />
                        </>
                    )}
                </p>
            ) : null;
        return (
            <article
                className={styles.row}
                aria-label={other ? other.name || other.id : "You"}
                data-other={other ? "" : undefined}
            >
                <Human entry={entry} to={to} />
                {row.isUnanswered && <NoAnswer entry={entry} />}
            </article>
        );
    }
    return (
        <article className={styles.row} aria-label={name} data-name={showsName || undefined}>
            {showsName && (
                <header className={styles.name}>
                    <AgentBadge assistantId={chat.assistantId} />
                </header>
            )}
            {message.type === "human" && <Between entry={entry} />}
            {message.type === "tool" && <LoneResult message={message} />}
            {message.type === "system" && <p className={styles.quiet}>{partsOf(message).text}</p>}
            {message.type === "ai" && (
                <Agent
                    entry={entry}
                    results={results}
                    answers={row.answers}
                    isWriting={isWriting}
                />
            )}
        </article>
    );
}

/**
 * Compares the parts of a chat that one of its messages shows: an answer without tool calls does
 * not depend on the agent's state.
 */
function isChatSame({ entry: before, results }: Row, { entry: after, answers }: Row): boolean {
    const [a, b] = [before.chat, after.chat];
    if (a === b) return true;
    if (answers && a.phase !== b.phase) return false; // Regenerate is disabled while the agent runs
    const { message } = after;
    const id = message.id ?? "";
    const isSettled =
        message.type === "ai" && callsOf(message).length === results.length && !isBlank(message);
    if (a.assistantId !== b.assistantId || a.unsent.has(id) !== b.unsent.has(id)) return false;
    if (isSettled) return true;
    if (a.broken.get(id) !== b.broken.get(id)) return false;
    return (
        a.phase === b.phase &&
        a.head === b.head &&
        a.isOnOtherBranch === b.isOnOtherBranch &&
        a.interrupts.length === b.interrupts.length &&
        (!b.unsent.has(id) || a.failure?.reason === b.failure?.reason)
    );
}

export const MessageRow = memo(
    MessageRowView,
    (before, after) =>
        before.isWriting === after.isWriting &&
        before.hasMany === after.hasMany &&
        before.row.showsName === after.row.showsName &&
        before.row.isUnanswered === after.row.isUnanswered &&
        before.row.answers?.message.id === after.row.answers?.message.id &&
        isChatSame(before.row, after.row) &&
        deepEqual(before.row.entry.message, after.row.entry.message) &&
        deepEqual(before.row.entry.origin, after.row.entry.origin) &&
        deepEqual(before.row.results, after.row.results),
);
