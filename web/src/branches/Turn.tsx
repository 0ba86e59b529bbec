// A message of the user with its controls: edit in place, retry, and switch between versions.
import { useEffect, useRef, useState, type ReactNode } from "react";
import type { Origin } from "@/api/heddle";
import type { Content } from "@/chat/agentChat";
import type { Entry } from "@/chat/openThread";
import { textOf } from "@/chat/text";
import { useAccess } from "@/threads/access";
import { CopyButton } from "@/threads/CopyButton";
import { IconButton } from "@/ui/Button";
import { pendingFocus, isSameTurn, replacedVersion, type Control, type TurnKey } from "./turnFocus";
import { BranchSwitch } from "./BranchSwitch";
import styles from "./Turn.module.css";
import { TurnEditor } from "./TurnEditor";

/** A run may have several input messages: the first one represents the turn. */
function isFirstOfTurn({ chat, message, origin }: Entry): boolean {
    const first = chat.messages.find(
        (one) =>
            one.type === "human" && chat.originOf(one.id)?.checkpoint_id === origin?.checkpoint_id,
    );
    return first?.id === message.id;
}

function keyOf(assistantId: string, origin: Origin | undefined): TurnKey | null {
    return origin?.fork_checkpoint_id ? { assistantId, fork: origin.fork_checkpoint_id } : null;
}

/** Returns the focus to the used control after another version has replaced the message. */
function useHand(turn: TurnKey | null, messageId: string) {
    const root = useRef<HTMLDivElement>(null);
    useEffect(() => {
        const held = pendingFocus.get();
        if (!held || !isSameTurn(held, turn) || held.from === messageId) return;
        const find = (control: Control) =>
            root.current?.querySelector<HTMLElement>(`[data-control="${control}"]`);
        const target = find(held.control);
        if (!target) return;
        pendingFocus.set(null);
        if (document.activeElement === document.body || document.activeElement === null)
            target.focus();
    });
    return root;
}

export function Turn({ entry, children }: { entry: Entry; children: ReactNode }) {
    const { chat, message, origin } = entry;
    const [isEditing, setEditing] = useState(false);
    const editButton = useRef<HTMLButtonElement>(null);
    const turn = keyOf(chat.assistantId, origin);
    const id = message.id ?? "";
    const root = useHand(turn, id);
    const alternatives = origin?.alternatives ?? [];
    const { canWrite } = useAccess();
    const text = textOf(message.content);
    // A message without a fork checkpoint, such as one written by a node, cannot be resent.
    const canChange = canWrite && !origin?.delegated && origin?.fork_checkpoint_id !== null;
    const isBusy = chat.phase !== "idle";

    const leave = (control: Control) => {
        if (!turn) return;
        const at = alternatives.findIndex((one) => one.current);
        pendingFocus.set({ ...turn, control, from: id });
        replacedVersion.set({ ...turn, number: Math.max(at, 0) + 1 });
    };
    const retry = () => {
        leave("retry");
        chat.retry(id).catch(() => undefined); // the message shows the error
    };
    const wasEditing = useRef(false);
    useEffect(() => {
        if (wasEditing.current && !isEditing) editButton.current?.focus();
        wasEditing.current = isEditing;
    }, [isEditing]);
    const stopEditing = () => setEditing(false);
    const save = (content: Content) => {
        stopEditing();
        leave("edit");
        chat.edit(id, content).catch(() => undefined);
    };

    return (
        <div ref={root} className={styles.turn}>
            <div className={`${styles.message} ${isEditing ? styles.editing : ""}`}>
                {isEditing ? (
                    <TurnEditor content={message.content} onCancel={stopEditing} onSave={save} />
                ) : (
                    children
                )}
            </div>
            {canChange && !isEditing && (
                <div className={styles.tools} role="group" aria-label="Change this message">
                    {text && <CopyButton text={text} label="Copy message" />}
                    <IconButton
                        ref={editButton}
                        icon="edit"
                        label="Edit"
                        data-control="edit"
                        aria-disabled={isBusy}
                        onClick={() => !isBusy && setEditing(true)}
                    />
                    <IconButton
                        icon="retry"
                        label="Retry"
                        tip="right"
                        data-control="retry"
                        aria-disabled={isBusy}
                        onClick={() => !isBusy && retry()}
                    />
                </div>
            )}
            {turn && alternatives.length > 1 && isFirstOfTurn(entry) && (
                <div className={styles.under}>
                    <BranchSwitch
                        turn={turn}
                        messageId={id}
                        chat={chat}
                        alternatives={alternatives}
                    />
                </div>
            )}
        </div>
    );
}
