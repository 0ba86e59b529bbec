// Above the composer: a notice about an answer on another branch, and the screen reader
// announcements.
import { useStore } from "@/api/store";
import { AgentBadge } from "@/agents/AgentBadge";
import { useOpenThread } from "@/chat/openThread";
import { Button } from "@/ui/Button";
import { announced } from "./turnFocus";
import styles from "./BranchNotice.module.css";

export function BranchNotice() {
    const { chats } = useOpenThread();
    const announcement = useStore(announced);
    const elsewhere = chats.filter((chat) => chat.isOnOtherBranch);
    return (
        <>
            <div role="status" className="visually-hidden">
                {announcement}
            </div>
            <div role="status">
                {elsewhere.map((chat) => (
                    <div key={chat.assistantId} className={styles.notice}>
                        {chats.length > 1 && (
                            <AgentBadge assistantId={chat.assistantId} size="small" />
                        )}
                        <span className={styles.text}>
                            An answer is being written on another branch.
                        </span>
                        <Button kind="quiet" onClick={() => chat.show(null)}>
                            Show it
                        </Button>
                    </div>
                ))}
            </div>
        </>
    );
}
