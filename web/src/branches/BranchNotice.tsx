// Above the composer: that an answer is written where one does not look, and what a screen reader
// is told.
import { useStore } from "@/api/store";
import { AgentBadge } from "@/agents/AgentBadge";
import { useRoom } from "@/talk/room";
import { Button } from "@/ui/Button";
import { spoken } from "./attention";
import styles from "./BranchNotice.module.css";

export function BranchNotice() {
    const { lines } = useRoom();
    const said = useStore(spoken);
    const elsewhere = lines.filter((line) => line.isElsewhere);
    return (
        <>
            <div role="status" className="visually-hidden">
                {said}
            </div>
            <div role="status">
                {elsewhere.map((line) => (
                    <div key={line.assistantId} className={styles.notice}>
                        {lines.length > 1 && (
                            <AgentBadge assistantId={line.assistantId} size="small" />
                        )}
                        <span className={styles.text}>
                            An answer is being written on another branch.
                        </span>
                        <Button kind="quiet" onClick={() => line.show(null)}>
                            Show it
                        </Button>
                    </div>
                ))}
            </div>
        </>
    );
}
