// The versions of a turn, and buttons to switch between them: `1 / 3 ‹ ›`.
import type { Alternative } from "@/api/heddle";
import { useStore } from "@/api/store";
import type { AgentChat } from "@/chat/agentChat";
import { IconButton } from "@/ui/Button";
import { pendingFocus, isSameTurn, replacedVersion, announced, type TurnKey } from "./turnFocus";
import styles from "./BranchSwitch.module.css";

interface SwitchProps {
    turn: TurnKey;
    messageId: string;
    chat: AgentChat;
    alternatives: Alternative[];
}

export function BranchSwitch({ turn, messageId, chat, alternatives }: SwitchProps) {
    const notice = useStore(replacedVersion);
    const at = alternatives.findIndex((one) => one.current);
    const count = alternatives.length;
    const step = (by: 1 | -1) => {
        const next = alternatives[at + by];
        if (!next) return;
        pendingFocus.set({ ...turn, control: by > 0 ? "next" : "previous", from: messageId });
        replacedVersion.set(null);
        announced.set(`Branch ${at + by + 1} of ${count}`);
        chat.show(next.head_checkpoint_id || null);
    };
    const isNew = isSameTurn(notice, turn) && at === count - 1;
    return (
        <div className={styles.switch}>
            <div className={styles.row} role="group" aria-label={`Branch ${at + 1} of ${count}`}>
                <span className={styles.count} aria-hidden="true">
                    {at + 1} / {count}
                </span>
                <IconButton
                    icon="back"
                    label="Previous branch"
                    data-control="previous"
                    className={styles.step}
                    aria-disabled={at <= 0}
                    onClick={() => step(-1)}
                />
                <IconButton
                    icon="forward"
                    label="Next branch"
                    data-control="next"
                    className={styles.step}
                    aria-disabled={at >= count - 1}
                    onClick={() => step(1)}
                />
            </div>
            {isNew && notice && (
                <p>
                    The earlier version is kept as {notice.number} of {count}.
                </p>
            )}
        </div>
    );
}
