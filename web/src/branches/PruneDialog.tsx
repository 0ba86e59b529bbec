// Asks before a branch is pruned, and says what is lost.
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

/** How many messages are on these ways only; null: not counted yet, or too many ways. */
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
            (ways) => {
                // On one way ids of checkpoints ascend: what is before the branch is not lost.
                const lost = ways.flatMap((way) =>
                    way.messages.filter((one) => one.checkpoint_id >= node.branch.branch_id),
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
        // Nobody may look at what is about to go: the server tells of it before it answers.
        const left = node.isOnWay ? chat.head : null;
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
        toast("The branch was pruned. Its space was given back.");
        void chat.reload();
        onClose(true);
    };

    return (
        <Dialog
            title="Prune this branch?"
            onClose={() => onClose(false)}
            actions={
                <>
                    <Button onClick={() => onClose(false)}>Keep it</Button>
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
                {plural(steps, "step")}) for good and gives the space back. Everything before it
                stays, and so do the other branches.
            </p>
            {reason && (
                <p role="alert" className={styles.reason}>
                    {reason}
                </p>
            )}
        </Dialog>
    );
}
