// All branches of the conversation, for each of its agents.
import { useState } from "react";
import { AgentBadge } from "@/agents/AgentBadge";
import { useAccess } from "@/threads/access";
import { useRoom } from "@/talk/room";
import { Button } from "@/ui/Button";
import type { Line } from "@/talk/line";
import { BranchTree } from "./BranchTree";
import { plural, type Node } from "./model";
import { PruneDialog } from "./PruneDialog";
import styles from "./TreePanel.module.css";
import { useTrees } from "./useTrees";

export function TreePanel({ onChosen }: { onChosen(): void }) {
    const { threadId } = useRoom();
    const { canWrite } = useAccess();
    const { trees, isLoading, reason, reload } = useTrees();
    const [pruned, setPruned] = useState<{ line: Line; node: Node } | null>(null);
    const total = trees.reduce((sum, tree) => sum + tree.count, 0);

    return (
        <div className={styles.panel}>
            {reason && (
                <div role="alert" className={styles.trouble}>
                    <p>The branches can't be read: {reason}</p>
                    <Button icon="retry" onClick={reload}>
                        Try again
                    </Button>
                </div>
            )}
            {!reason && isLoading && <p className={styles.hint}>Loading…</p>}
            {!reason && !isLoading && total <= 1 && (
                <p className={styles.hint}>
                    {total === 0 ? "Nothing was said yet. " : ""}
                    Edit or retry a message: every version is kept, and they stand here side by
                    side.
                </p>
            )}
            {trees.map(({ line, nodes, count }) => (
                <section
                    key={line.assistantId}
                    className={styles.agent}
                    aria-label="Branches of an agent"
                >
                    <h3 className={styles.head}>
                        <AgentBadge assistantId={line.assistantId} />
                        <span className={styles.count}>{plural(count, "branch", "branches")}</span>
                    </h3>
                    <BranchTree
                        line={line}
                        threadId={threadId}
                        nodes={nodes}
                        canWrite={canWrite}
                        onChosen={onChosen}
                        onChange={reload}
                        onPrune={(node) => setPruned({ line, node })}
                    />
                </section>
            ))}
            {pruned && (
                <PruneDialog
                    threadId={threadId}
                    line={pruned.line}
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
