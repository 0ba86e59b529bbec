// The controls of a chat message.
import { useState } from "react";
import { reasonOf } from "@/api/client";
import { CopyButton } from "@/threads/CopyButton";
import { Button, IconButton } from "@/ui/Button";
import { Dialog } from "@/ui/Dialog";
import { Switch } from "@/ui/Field";
import { Menu, type MenuItem } from "@/ui/Menu";
import { toast } from "@/ui/toast";
import { continueElsewhere, copyLink, rate, remove } from "./actions";
import { useOpenRoom, useRoomAccess, useSession } from "./context";
import styles from "./Message.module.css";
import { RetryDialog } from "./RetryDialog";
import { countRatings, plainText, ratingOf } from "./text";
import type { ChatMessage, Rating } from "./types";

const left: Record<string, string> = {
    versions: "its earlier versions",
    run_inputs: "the inputs of runs that it was part of",
    checkpoints: "the states of the agents that read it",
    events: "the events of those runs",
    recordings: "recordings of those runs",
};

function RemoveDialog({ message, onClose }: { message: ChatMessage; onClose(): void }) {
    const session = useSession();
    const [purges, setPurges] = useState(false);
    const [problem, setProblem] = useState<string | null>(null);
    const go = () =>
        remove(session, message, purges).then(
            (remains) => {
                onClose();
                const words = remains.map((one) => left[one] ?? one);
                if (words.length > 0) toast(`Deleted. What remains: ${words.join(", ")}.`);
            },
            (error: unknown) => setProblem(reasonOf(error)),
        );
    return (
        <Dialog
            title="Delete this message?"
            onClose={onClose}
            actions={
                <>
                    <Button onClick={onClose}>Keep it</Button>
                    <Button kind="danger" icon="trash" onClick={() => void go()}>
                        Delete
                    </Button>
                </>
            }
        >
            <p>Readers see that a message was deleted. Agents are no longer given it.</p>
            <Switch
                label="Also delete what remains"
                hint="Earlier versions, and the states of every agent from where it was given."
                isOn={purges}
                onChange={setPurges}
            />
            {problem && (
                <p className={styles.problem} role="alert">
                    {problem}
                </p>
            )}
        </Dialog>
    );
}

function Thumbs({ message }: { message: ChatMessage }) {
    const session = useSession();
    const { room } = useOpenRoom();
    if (!room) return null;
    const own = ratingOf(message, room.me);
    const counts = countRatings(message);
    const thumb = (rating: Rating, label: string) => (
        <IconButton
            icon={rating === "up" ? "thumbUp" : "thumbDown"}
            label={counts[rating] > 1 ? `${label} (${counts[rating]})` : label}
            aria-pressed={own === rating}
            onClick={() => rate(session, message, own === rating ? null : rating)}
        />
    );
    return (
        <>
            {thumb("up", "Good answer")}
            {thumb("down", "Bad answer")}
        </>
    );
}

interface ToolsProps {
    message: ChatMessage;
    isOwn: boolean;
    onReply(): void;
    onEdit(): void;
}

export function MessageTools({ message, isOwn, onReply, onEdit }: ToolsProps) {
    const { canWrite, isOwner } = useRoomAccess();
    const [open, setOpen] = useState<"remove" | "retry" | null>(null);
    const { sender, state } = message;
    const isAnswer = sender.type === "agent";
    const isSettled = state !== "pending";
    const text = plainText(message);
    const items: MenuItem[] = [
        { label: "Copy link", icon: "link", onSelect: () => copyLink(message) },
    ];
    if (isSettled)
        items.push({
            label: "Continue in a new conversation",
            icon: "tree",
            onSelect: () => continueElsewhere(message),
        });
    if (canWrite && isAnswer && isSettled && state !== "stale" && message.run_id)
        items.push({ label: "Regenerate", icon: "retry", onSelect: () => setOpen("retry") });
    if (canWrite && (isOwn || isOwner) && isSettled)
        items.push({
            label: "Delete",
            icon: "trash",
            isDanger: true,
            onSelect: () => setOpen("remove"),
        });
    return (
        <div className={styles.tools}>
            {canWrite && <IconButton icon="reply" label="Reply" tip="left" onClick={onReply} />}
            {canWrite && isAnswer && isSettled && <Thumbs message={message} />}
            {text && <CopyButton text={text} label="Copy text" />}
            {canWrite && isOwn && state === "ok" && (
                <IconButton icon="edit" label="Edit" tip="right" onClick={onEdit} />
            )}
            <Menu label="Actions for this message" align={isOwn ? "right" : "left"} items={items} />
            {open === "remove" && <RemoveDialog message={message} onClose={() => setOpen(null)} />}
            {open === "retry" && <RetryDialog message={message} onClose={() => setOpen(null)} />}
        </div>
    );
}
