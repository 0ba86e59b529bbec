// All branches of the conversation, for each of its agents.
import { useState } from "react";
import { AgentBadge } from "@/agents/AgentBadge";
import { useAccess } from "@/threads/access";
import { useOpenThread } from "@/chat/openThread";
import { Button } from "@/ui/Button";
import type { AgentChat } from "@/chat/agentChat";
import { BranchTree } from "./BranchTree";
import { plural, type Node } from "./model";
import { PruneDialog } from "./PruneDialog";
import styles from "./TreePanel.module.css";
import { useTrees } from "./useTrees";

export function TreePanel({ onChosen }: { onChosen(): void }) {
    const { threadId } = useOpenThread();
    const { canWrite } = useAccess();
    const { trees, isLoading, reason, reload } = useTrees();
    const [pruned, setPruned] = useState<{ chat: AgentChat; node: Node } | null>(null);
    const total = trees.reduce((sum, tree) => sum + tree.count, 0);

    return (
        <div className={styles.panel}>
            {reason && (
                <div role="alert" className={styles.trouble}>
                    <p>Could not load the branches: {reason}</p>
                    <Button icon="retry" onClick={reload}>
                        Try again
                    </Button>
                </div>
            )}
            {!reason && isLoading && <p className={styles.hint}>Loading…</p>}
            {!reason && !isLoading && total <= 1 && (
                <p className={styles.hint}>
                    {total === 0 ? "No messages yet. " : ""}
                    Edit or retry a message: every version is kept and shown here as a branch.
                </p>
            )}
            {trees.map(({ chat, nodes, count }) => (
                <section
                    key={chat.assistantId}
                    className={styles.agent}
                    aria-label="Branches of an agent"
                >
                    <h3 className={styles.head}>
                        <AgentBadge assistantId={chat.assistantId} />
                        <span className={styles.count}>{plural(count, "branch", "branches")}</span>
                    </h3>
                    <BranchTree
                        chat={chat}
                        threadId={threadId}
                        nodes={nodes}
                        canWrite={canWrite}
                        onChosen={onChosen}
                        onChange={reload}
                        onPrune={(node) => setPruned({ chat, node })}
                    />
                </section>
            ))}
            {pruned && (
                <PruneDialog
                    threadId={threadId}
                    chat={pruned.chat}
                    node={pruned.node}
                    onClose={(isPruned) => {
                        setPruned(null);
                        if (isPruned) reload();
                    }}
                />
            )}
        </div>
    );
}
