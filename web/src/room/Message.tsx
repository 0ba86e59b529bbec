// One chat message: who said it, what, and what became of it.
import { memo, useEffect, useRef, useState, type CSSProperties, type ReactNode } from "react";
import { Markdown } from "@/chat/Markdown";
import { partsOf } from "@/chat/parts";
import { Picture } from "@/chat/Picture";
import { sentence } from "@/chat/text";
import { messageHash } from "@/app/route";
import { fullDate } from "@/threads/dates";
import { Button } from "@/ui/Button";
import { Icon } from "@/ui/icons";
import { colourOfSender, Face } from "./Face";
import { InnerSteps } from "./InnerSteps";
import styles from "./Message.module.css";
import { MessageEditor } from "./MessageEditor";
import { MessageTools } from "./MessageTools";
import { textOfLive, toolsOfLive, type Live } from "./model";
import { Question } from "./Question";
import type { Rewrite, Row } from "./rows";
import type { Outgoing } from "./session";
import { excerptOf, reasonOfError } from "./text";
import type { ChatMessage, Content, Sender } from "./types";

const timeOf = (time: string) =>
    new Date(time).toLocaleTimeString(undefined, { hour: "2-digit", minute: "2-digit" });

const senderStyle = (sender: Sender) => ({ "--face": colourOfSender(sender) }) as CSSProperties;

interface ShellProps {
    id?: string;
    label: string;
    sender: Sender;
    isOwn: boolean;
    showsSender: boolean;
    isStale?: boolean;
    isTarget?: boolean;
    isUnsent?: boolean;
    children: ReactNode;
}

function Shell({ id, label, sender, isOwn, showsSender, children, ...is }: ShellProps) {
    const row = useRef<HTMLElement>(null);
    const { isTarget } = is;
    useEffect(() => {
        if (isTarget) row.current?.scrollIntoView({ block: "center" });
    }, [isTarget]);
    return (
        <article
            ref={row}
            id={id}
            className={`${styles.row} ${showsSender ? "" : styles.followUp}`}
            style={senderStyle(sender)}
            aria-label={label}
            data-own={isOwn || undefined}
            data-stale={is.isStale || undefined}
            data-target={isTarget || undefined}
            data-unsent={is.isUnsent || undefined}
        >
            {!isOwn && <div className={styles.side}>{showsSender && <Face sender={sender} />}</div>}
            <div className={styles.main}>{children}</div>
        </article>
    );
}

function Said({ content, isGrowing = false }: { content: Content; isGrowing?: boolean }) {
    const { text, images, others } = partsOf({ content });
    return (
        <>
            {images.length > 0 && (
                <div className={styles.pictures}>
                    {images.map((address, at) => (
                        <Picture key={at} address={address} name={`Image ${at + 1}`} />
                    ))}
                </div>
            )}
            {text && <Markdown text={text} isGrowing={isGrowing} keepsLines />}
            {others.length > 0 && (
                <p className={styles.quiet}>
                    Unsupported content: {[...new Set(others)].join(", ")}.
                </p>
            )}
        </>
    );
}

/** The message that this one replies to. */
function Quote({ of, onGo }: { of: ChatMessage | undefined; onGo(): void }) {
    return (
        <button type="button" className={styles.quote} onClick={onGo}>
            <span className="visually-hidden">Reply to </span>
            {of ? (
                <>
                    <strong>{of.sender.name}</strong> {excerptOf(of)}
                </>
            ) : (
                "an earlier message"
            )}
        </button>
    );
}

/** What a run writes, as far as it is there. */
function Growing({ live }: { live: Live }) {
    const text = textOfLive(live);
    const tools = toolsOfLive(live);
    return (
        <>
            {tools.length > 0 && (
                <p className={styles.quiet}>
                    <Icon name="tool" size={14} /> {tools.join(", ")}
                </p>
            )}
            {text && <Markdown text={text} isGrowing />}
        </>
    );
}

function Redone({ rewrite }: { rewrite: Rewrite }) {
    const { status, live, cascade } = rewrite;
    const words: Record<Rewrite["status"], string> = {
        waiting: cascade.status === "waiting" ? "Waits for approval" : "Will be answered again",
        running: "Is answered again",
        done: "The new answer is ready",
        question: "The new run asks a question",
        failed: "The new answer failed",
        skipped: "",
    };
    return (
        <div className={styles.rewrite}>
            <p className={styles.quiet}>
                <Icon name="retry" size={14} /> {words[status]}
            </p>
            {live && <Growing live={live} />}
        </div>
    );
}

function Outcome({ message, onGo }: { message: ChatMessage; onGo(id: string): void }) {
    const { state, replaced_by: after, replaces: before } = message;
    const reason = reasonOfError(message.error);
    return (
        <>
            {state === "error" && (
                <p className={styles.problem}>
                    <Icon name="warning" size={16} />{" "}
                    {reason ? sentence(reason) : "The agent failed here."}
                </p>
            )}
            {state === "stopped" && (
                <p className={styles.note}>
                    <span>
                        <Icon name="stop" size={16} /> Stopped
                    </span>
                </p>
            )}
            {state === "stale" && (
                <p className={styles.note}>
                    <span>
                        <Icon name="clock" size={16} /> Out of date
                    </span>
                    {after && (
                        <button type="button" className={styles.link} onClick={() => onGo(after)}>
                            Go to the newer one
                        </button>
                    )}
                </p>
            )}
            {before && state !== "stale" && (
                <p className={styles.note}>
                    <button type="button" className={styles.link} onClick={() => onGo(before)}>
                        Replaces an earlier answer
                    </button>
                </p>
            )}
        </>
    );
}

function Body({ message, isOwn }: { message: ChatMessage; isOwn: boolean }) {
    const { content, state, sender } = message;
    if (state === "deleted") return <p className={styles.quiet}>This message was deleted.</p>;
    if (content === null) {
        const isSilent = sender.type === "agent" && (state === "ok" || state === "stale");
        return isSilent ? <p className={styles.quiet}>The answer is empty.</p> : null;
    }
    return (
        <div
            className={`${styles.content} ${isOwn || sender.type !== "agent" ? styles.bubble : ""}`}
            data-bubble={isOwn || undefined}
        >
            <Said content={content} />
        </div>
    );
}

interface MessageProps {
    row: Row;
    quoted: ChatMessage | undefined;
    isTarget: boolean;
    onGo(id: string): void;
    onReply(message: ChatMessage): void;
}

export const Message = memo(
    function Message({ row, quoted, isTarget, onGo, onReply }: MessageProps) {
        const { message, isOwn, showsSender, rewrite } = row;
        const { sender, state, version } = message;
        const [isEditing, setEditing] = useState(false);
        const isQuestion = state === "pending" && message.interrupts !== null;
        const reply = message.reply_to;
        return (
            <Shell
                id={`message-${message.id}`}
                label={isOwn ? "You" : sender.name || sender.id}
                sender={sender}
                isOwn={isOwn}
                showsSender={showsSender}
                isStale={state === "stale"}
                isTarget={isTarget}
            >
                {showsSender && (
                    <header className={styles.head}>
                        {!isOwn && <span className={styles.name}>{sender.name || sender.id}</span>}
                        <a
                            className={styles.time}
                            href={messageHash(message.thread_id, message.id)}
                            title={fullDate(message.created_at)}
                        >
                            <time dateTime={message.created_at}>{timeOf(message.created_at)}</time>
                        </a>
                        {version > 1 && state !== "deleted" && <span>edited</span>}
                    </header>
                )}
                {!showsSender && version > 1 && state !== "deleted" && (
                    <p className={styles.quiet}>edited</p>
                )}
                {reply && row.showsQuote && <Quote of={quoted} onGo={() => onGo(reply)} />}
                {isEditing ? (
                    <MessageEditor message={message} onDone={() => setEditing(false)} />
                ) : (
                    <Body message={message} isOwn={isOwn} />
                )}
                {isQuestion && <Question message={message} />}
                <Outcome message={message} onGo={onGo} />
                {rewrite && <Redone rewrite={rewrite} />}
                {sender.type === "agent" && state !== "deleted" && !isQuestion && (
                    <InnerSteps message={message} />
                )}
                {!isEditing && state !== "deleted" && (
                    <MessageTools
                        message={message}
                        isOwn={isOwn}
                        onReply={() => onReply(message)}
                        onEdit={() => setEditing(true)}
                    />
                )}
            </Shell>
        );
    },
    (before, after) =>
        before.row.message === after.row.message &&
        before.row.showsSender === after.row.showsSender &&
        before.row.showsQuote === after.row.showsQuote &&
        before.row.isOwn === after.row.isOwn &&
        before.row.rewrite?.live === after.row.rewrite?.live &&
        before.row.rewrite?.status === after.row.rewrite?.status &&
        before.row.rewrite?.cascade.status === after.row.rewrite?.cascade.status &&
        before.quoted === after.quoted &&
        before.isTarget === after.isTarget,
);

/** An agent that is writing: its answer is no message yet. */
export function Writing({ live, agent, onStop }: { live: Live; agent: Sender; onStop: ReactNode }) {
    const isWaiting = live.status === "pending" && live.pieces.length === 0;
    return (
        <Shell label={agent.name} sender={agent} isOwn={false} showsSender>
            <header className={`${styles.head} ${styles.working}`}>
                <span className={styles.name}>{agent.name}</span>
                <span>{isWaiting ? "is waiting" : "is writing…"}</span>
                <span className={styles.pulse} aria-hidden="true" />
                {onStop}
            </header>
            <Growing live={live} />
        </Shell>
    );
}

interface UnsentProps {
    outgoing: Outgoing;
    me: Sender;
    onResend(): void;
    onTakeBack(): void;
}

/** A message of the user on its way. */
export function Unsent({ outgoing, me, onResend, onTakeBack }: UnsentProps) {
    const { content, problem } = outgoing;
    return (
        <Shell label="You" sender={me} isOwn showsSender={false} isUnsent={problem !== null}>
            <div className={`${styles.content} ${styles.bubble}`} data-bubble>
                <Said content={content} />
            </div>
            {problem !== null && (
                <div className={styles.unsent} role="alert">
                    <p>
                        <Icon name="warning" size={16} /> <strong>Not sent.</strong>{" "}
                        {sentence(problem)}
                    </p>
                    <Button kind="quiet" onClick={onTakeBack}>
                        Back to the editor
                    </Button>
                    <Button icon="retry" onClick={onResend}>
                        Send again
                    </Button>
                </div>
            )}
        </Shell>
    );
}
