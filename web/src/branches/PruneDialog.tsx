// Confirms pruning a branch and shows how much is lost.
import { useEffect, useState } from "react";
import { reasonOf, statusOf } from "@/api/client";
import { getOrigins, pruneBranch } from "@/api/heddle";
import type { AgentChat } from "@/chat/agentChat";
import { Button } from "@/ui/Button";
import { Dialog } from "@/ui/Dialog";
import { toast } from "@/ui/toast";
import { lossOf, plural, type Node } from "./model";
import styles from "./PruneDialog.module.css";

interface PruneProps {
    threadId: string;
    chat: AgentChat;
    node: Node;
    onClose(isPruned: boolean): void;
}

const MOST_LEAVES = 20;

/** How many messages are only on these branches; null: not counted yet, or too many branches. */
function useMessageCount(threadId: string, assistantId: string, node: Node): number | null {
    const [count, setCount] = useState<number | null>(null);
    useEffect(() => {
        const { leaves } = lossOf(node);
        if (leaves.length > MOST_LEAVES) return;
        const controller = new AbortController();
        const where = { assistantId, signal: controller.signal };
        Promise.all(
            leaves.map((checkpointId) => getOrigins(threadId, { ...where, checkpointId })),
        ).then(
            (paths) => {
                // Checkpoint ids ascend along a branch: messages before it are not lost.
                const lost = paths.flatMap((path) =>
                    path.messages.filter((one) => one.checkpoint_id >= node.branch.branch_id),
                );
                setCount(new Set(lost.map((message) => message.id)).size);
            },
            () => undefined,
        );
        return () => controller.abort();
    }, [threadId, assistantId, node]);
    return count;
}

export function PruneDialog({ threadId, chat, node, onClose }: PruneProps) {
    const [reason, setReason] = useState<string | null>(null);
    const [isPruning, setPruning] = useState(false);
    const messages = useMessageCount(threadId, chat.assistantId, node);
    const { leaves, steps } = lossOf(node);

    const prune = async () => {
        setPruning(true);
        setReason(null);
        // Leave the branch first: the server reports the change before it responds.
        const left = node.isOnPath ? chat.head : null;
        if (left) chat.show(null);
        try {
            await pruneBranch(threadId, chat.assistantId, node.branch.branch_id);
        } catch (error) {
            const isBusy = statusOf(error) === 409 && /busy/i.test(reasonOf(error));
            setReason(
                isBusy ? "An answer is being written. Try again when it is done." : reasonOf(error),
            );
            setPruning(false);
            if (left) chat.show(left);
            return;
        }
        toast("The branch was pruned and its space freed.");
        void chat.reload();
        onClose(true);
    };

    return (
        <Dialog
            title="Prune this branch?"
            onClose={() => onClose(false)}
            actions={
                <>
                    <Button onClick={() => onClose(false)}>Cancel</Button>
                    <Button
                        kind="danger"
                        icon="trash"
                        disabled={isPruning}
                        onClick={() => void prune()}
                    >
                        Prune
                    </Button>
                </>
            }
        >
            <p className={styles.label}>{node.label}</p>
            <p>
                This removes {plural(leaves.length, "branch", "branches")}
                {messages === null ? "" : ` with ${plural(messages, "message")}`} (
                {plural(steps, "step")}) permanently and frees its space. Earlier messages and other
                branches are kept.
            </p>
            {reason && (
                <p role="alert" className={styles.reason}>
                    {reason}
                </p>
            )}
        </Dialog>
    );
}
