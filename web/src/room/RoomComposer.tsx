// The composer of a room. It shows the agents that will answer a message before it is sent.
import { useEffect, useId, useState, type KeyboardEvent } from "react";
import { reasonOf } from "@/api/client";
import { useStore } from "@/api/store";
import { useAttached } from "@/chat/attach";
import { Attach, contentOf, Previews, useHeight } from "@/chat/Composer";
import composerStyles from "@/chat/Composer.module.css";
import { joinTexts, readDraft, useDraft } from "@/chat/draft";
import { fill } from "@/chat/fill";
import { IconButton } from "@/ui/Button";
import { touch, useMatches } from "@/ui/media";
import { toast } from "@/ui/toast";
import { stopRoom } from "./api";
import { useOpenRoom, useRoomAccess, useSession } from "./context";
import { colourOfSender } from "./Face";
import { askedBy, type Named } from "./mention";
import { useNamed, useNames } from "./names";
import styles from "./RoomComposer.module.css";
import { namesOf } from "./rows";
import { runningOf } from "./session";
import { excerptOf } from "./text";
import type { ChatMessage } from "./types";

function Typing() {
    const { room, state } = useOpenRoom();
    const people = [...state.typing.values()]
        .map(({ person }) => person)
        .filter((person) => person.id !== room?.me.id);
    return (
        <p className={styles.typing} role="status">
            {people.length > 0 &&
                `${namesOf(people)} ${people.length === 1 ? "is" : "are"} typing…`}
        </p>
    );
}

/** The agents that the message asks. */
function Asked({ ids, named, isEmpty }: { ids: string[]; named: Named[]; isEmpty: boolean }) {
    const agents = ids.flatMap((id) => named.find((one) => one.id === id) ?? []);
    if (agents.length === 0)
        return <span className={styles.asked}>{isEmpty ? "" : "Asks no agent"}</span>;
    return (
        <span className={styles.asked} data-asked>
            to
            {agents.map((agent) => (
                <strong key={agent.id} style={{ color: colourOfSender(agent) }}>
                    {agent.name}
                </strong>
            ))}
        </span>
    );
}

interface ComposerProps {
    replyTo: ChatMessage | null;
    onReplyTo(message: ChatMessage | null): void;
}

export function RoomComposer({ replyTo, onReplyTo }: ComposerProps) {
    const session = useSession();
    const { room, state } = useOpenRoom();
    const { canWrite, canSend, notice } = useRoomAccess();
    const draftOf = `room:${session.threadId}`;
    const [text, setText] = useState(() => readDraft(draftOf));
    const attached = useAttached();
    const area = useHeight(text);
    const named = useNamed(room);
    const names = useNames({ text, setText, textarea: area, named });
    const filling = useStore(fill);
    const hint = useId();
    const hasLines = useMatches(touch);
    const isFull = text.trim() !== "" || attached.images.length > 0;
    const mayGo = canSend && room !== null && isFull;
    const repliedAgent = replyTo?.sender.type === "agent" ? replyTo.sender.id : null;
    const asked = askedBy(text, named, repliedAgent, room?.default_assistant_id ?? null);
    const isRunning = runningOf(state).length > 0;

    useDraft(draftOf, text);
    useEffect(() => {
        if (!filling) return;
        fill.set(null);
        setText((before) => joinTexts(filling.text, before));
        attached.put(filling.images, true);
        area.current?.focus();
    }, [filling, attached.put, area]);
    useEffect(() => {
        if (replyTo) area.current?.focus();
    }, [replyTo, area]);

    const go = () => {
        if (!mayGo) return;
        session.send(contentOf(text, attached.images), replyTo?.id ?? null);
        setText("");
        attached.put([]);
        onReplyTo(null);
        area.current?.focus();
    };
    const stop = () =>
        stopRoom(session.threadId).catch(
            (error: unknown) => void toast(`Not stopped. ${reasonOf(error)}`, { kind: "error" }),
        );
    const onKeyDown = (event: KeyboardEvent) => {
        if (event.nativeEvent.isComposing || event.keyCode === 229 || names.onKeyDown(event))
            return;
        if (event.key === "Escape" && replyTo) onReplyTo(null);
        if (event.key !== "Enter" || event.shiftKey || event.altKey) return;
        if (hasLines && !event.ctrlKey && !event.metaKey) return;
        event.preventDefault();
        go();
    };

    return (
        <form
            className={composerStyles.composer}
            aria-label="Write a message"
            data-over={attached.isOver || undefined}
            onDragOver={attached.onDragOver}
            onDragLeave={attached.onDragLeave}
            onDrop={attached.onDrop}
            onSubmit={(event) => {
                event.preventDefault();
                go();
            }}
        >
            <Typing />
            <div className={composerStyles.box}>
                {names.popup}
                {replyTo && (
                    <div className={styles.reply}>
                        <p>
                            Reply to <strong>{replyTo.sender.name}</strong>: {excerptOf(replyTo)}
                        </p>
                        <IconButton
                            icon="close"
                            label="Do not reply"
                            tip="right"
                            onClick={() => onReplyTo(null)}
                        />
                    </div>
                )}
                <Previews images={attached.images} remove={attached.remove} />
                <textarea
                    ref={area}
                    className={composerStyles.text}
                    rows={1}
                    dir="auto"
                    aria-label="Message"
                    {...names.props}
                    value={text}
                    placeholder={canWrite ? "Write a message, or @name" : ""}
                    disabled={!canWrite}
                    aria-describedby={hint}
                    enterKeyHint={hasLines ? "enter" : "send"}
                    onChange={(event) => {
                        setText(event.target.value);
                        if (event.target.value) session.typed();
                    }}
                    onKeyDown={onKeyDown}
                    onSelect={names.onSelect}
                    onPaste={attached.onPaste}
                />
                <div className={composerStyles.bar}>
                    <Attach add={attached.add} isDisabled={!canWrite} />
                    <Asked ids={asked} named={named} isEmpty={!isFull} />
                    <span className={composerStyles.gap} />
                    {isRunning && canWrite && (
                        <IconButton
                            icon="stop"
                            label="Stop all agents"
                            tip="right"
                            disabled={!canSend}
                            onClick={() => void stop()}
                        />
                    )}
                    <IconButton
                        icon="send"
                        label="Send"
                        kind="primary"
                        tip="right"
                        type="submit"
                        disabled={!mayGo}
                    />
                </div>
            </div>
            <p
                id={hint}
                className={notice || attached.problem ? composerStyles.notice : "visually-hidden"}
                role={attached.problem ? "alert" : undefined}
            >
                {attached.problem ??
                    notice ??
                    (hasLines
                        ? "Enter begins a new line."
                        : "Enter sends, Shift+Enter begins a new line.")}
            </p>
        </form>
    );
}
