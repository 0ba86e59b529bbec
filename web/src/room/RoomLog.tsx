// The chat messages of a room, oldest first, then the answers that are being written.
import { useEffect, useMemo, useRef } from "react";
import { nameOf, useAssistants } from "@/api/assistants";
import { reasonOf } from "@/api/client";
import { cancelRun } from "@/api/heddle";
import { fill } from "@/chat/fill";
import { useFollow } from "@/chat/follow";
import { partsOf } from "@/chat/parts";
import logStyles from "@/chat/Conversation.module.css";
import { Button, IconButton } from "@/ui/Button";
import { toast } from "@/ui/toast";
import { useOpenRoom, useRoomAccess, useSession } from "./context";
import { Message, Unsent, Writing } from "./Message";
import type { Live } from "./model";
import styles from "./RoomView.module.css";
import { namesOf, readersOf, rowsOf, writersOf } from "./rows";
import type { ChatMessage, Room, Sender } from "./types";

function Skeleton() {
    return (
        <div className={logStyles.skeleton} role="status">
            <span className="visually-hidden">Loading the room</span>
            {[40, 85, 70, 30].map((width, at) => (
                <span key={at} className={logStyles.bone} style={{ width: `${width}%` }} />
            ))}
        </div>
    );
}

/** The name of an agent in the room, else its own. */
function useAgents(room: Room | null): (assistantId: string) => Sender {
    const { list } = useAssistants();
    return (id) => ({
        type: "agent",
        id,
        name:
            room?.agents.find((one) => one.assistant_id === id)?.name ??
            nameOf(list.find((one) => one.assistant_id === id)),
    });
}

/** Messages are read when the page shows the end of the list. */
function useReading(isScrolledUp: boolean, newest: number) {
    const session = useSession();
    useEffect(() => {
        const read = () => {
            const isSeen = document.visibilityState === "visible" && document.hasFocus();
            if (newest > 0 && !isScrolledUp && isSeen) session.read();
        };
        read();
        window.addEventListener("focus", read);
        return () => window.removeEventListener("focus", read);
    }, [session, isScrolledUp, newest]);
}

/** Announces complete messages of others once each. */
function useAnnouncement(messages: readonly ChatMessage[], me: Sender | undefined): string {
    const heard = useRef<number | null>(null);
    const text = useRef("");
    const last = messages.at(-1);
    if (last && me) {
        if (heard.current !== null && last.seq > heard.current && last.sender.id !== me.id)
            text.current = `New message from ${last.sender.name}`;
        heard.current = last.seq;
    }
    return text.current;
}

interface LogProps {
    /** The message of the address. */
    target: string | null;
    onGo(id: string): void;
    onReply(message: ChatMessage): void;
}

export function RoomLog({ target, onGo, onReply }: LogProps) {
    const session = useSession();
    const { room, state, hasEarlier, isLoadingEarlier, outbox, firstNew } = useOpenRoom();
    const { canWrite } = useRoomAccess();
    const agentOf = useAgents(room);
    const { messages } = state;
    const rows = useMemo(
        () => (room ? rowsOf(state, room.me, firstNew) : []),
        [state, room, firstNew],
    );
    const byId = useMemo(() => new Map(messages.map((one) => [one.id, one])), [messages]);
    const writers = useMemo(() => writersOf(state), [state]);
    const isEmpty = rows.length === 0 && writers.length === 0 && outbox.length === 0;
    const { box, content, isScrolledUp, goToEnd } = useFollow(!isEmpty && target === null);
    const newest = messages.at(-1)?.seq ?? 0;
    useReading(isScrolledUp, newest);
    const announcement = useAnnouncement(messages, room?.me);
    const lastOwn = rows.findLast((row) => row.isOwn && row.message.state !== "deleted");

    const sent = useRef(outbox.length);
    useEffect(() => {
        // On its way, and again when it is accepted: its row changes.
        if (outbox.length !== sent.current) goToEnd();
        sent.current = outbox.length;
    }, [outbox.length, goToEnd]);

    const takeBack = (id: string) => {
        const found = session.discard(id);
        if (!found) return;
        const { text, images } = partsOf({ content: found.content });
        fill.set({ text, images, isEarlier: true });
    };
    const stop = (live: Live) =>
        cancelRun(session.threadId, live.runId).catch(
            (error: unknown) => void toast(`Not stopped. ${reasonOf(error)}`, { kind: "error" }),
        );

    return (
        <div className={logStyles.frame}>
            <div
                ref={box}
                className={logStyles.log}
                role="log"
                aria-label="Messages"
                aria-live="off"
                aria-busy={room === null}
                tabIndex={0}
            >
                <div ref={content} className={logStyles.content}>
                    {room === null && <Skeleton />}
                    {room !== null && isEmpty && (
                        <div className={styles.empty}>
                            <h2>This room is empty</h2>
                            <p>
                                Write a message. Agents answer when you name them with @, and the
                                default agent answers messages that name none.
                            </p>
                        </div>
                    )}
                    {!isEmpty && <h2 className="visually-hidden">Messages</h2>}
                    {hasEarlier && (
                        <div className={styles.earlier}>
                            <Button
                                kind="quiet"
                                disabled={isLoadingEarlier}
                                onClick={() => void session.loadEarlier()}
                            >
                                {isLoadingEarlier ? "Loading…" : "Show earlier messages"}
                            </Button>
                        </div>
                    )}
                    {rows.flatMap((row) => [
                        row.isFirstUnread && (
                            <p key="unread" className={styles.unread}>
                                New
                            </p>
                        ),
                        <Message
                            key={row.message.id}
                            row={row}
                            quoted={byId.get(row.message.reply_to ?? "")}
                            isTarget={row.message.id === target}
                            onGo={onGo}
                            onReply={onReply}
                        />,
                        room && row === lastOwn && (
                            <Seen
                                key={`seen-${row.message.id}`}
                                readers={readersOf(state, row.message.seq, room.me)}
                            />
                        ),
                    ])}
                    {room &&
                        outbox.map((one) => (
                            <Unsent
                                key={one.id}
                                outgoing={one}
                                me={room.me}
                                onResend={() => session.resend(one.id)}
                                onTakeBack={() => takeBack(one.id)}
                            />
                        ))}
                    {writers.map((live) => {
                        const agent = agentOf(live.assistantId);
                        return (
                            <Writing
                                key={live.runId}
                                live={live}
                                agent={agent}
                                onStop={
                                    canWrite && (
                                        <IconButton
                                            icon="stop"
                                            label={`Stop ${agent.name}`}
                                            onClick={() => void stop(live)}
                                        />
                                    )
                                }
                            />
                        );
                    })}
                </div>
            </div>
            {isScrolledUp && !isEmpty && (
                <Button icon="down" className={logStyles.jump} onClick={() => goToEnd(true)}>
                    Jump to the latest
                </Button>
            )}
            <p className="visually-hidden" role="status" aria-live="polite">
                {announcement}
            </p>
        </div>
    );
}

function Seen({ readers }: { readers: Sender[] }) {
    if (readers.length === 0) return null;
    return <p className={styles.seen}>Read by {namesOf(readers)}</p>;
}
