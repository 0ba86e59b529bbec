// The answers that an edit makes again: how far they are, and what to decide.
import { useState } from "react";
import { reasonOf } from "@/api/client";
import { sentence } from "@/chat/text";
import { Button, IconButton } from "@/ui/Button";
import { small, useMatches } from "@/ui/media";
import { toast } from "@/ui/toast";
import { actOnCascade, type CascadeAction } from "./api";
import styles from "./CascadeBar.module.css";
import { useOpenRoom, useRoomAccess, useSession } from "./context";
import { PlanList } from "./PlanList";
import { isOpenCascade, progressOf, shownCascade } from "./rows";
import type { Cascade } from "./types";

/** Why a cascade waits for a person. */
function waitOf({ reason, plan }: Cascade): string {
    if (reason !== "approval") return "An agent asks a question. It goes on with the answer.";
    const open = plan.filter((step) => step.status === "waiting");
    return open.some((step) => step.approval === "effects")
        ? "Agents that used tools would use them again."
        : "More answers would be made again than the room allows without an approval.";
}

function headingOf(cascade: Cascade, done: number, all: number): string {
    const { status, reason } = cascade;
    const why = reason ? ` ${sentence(reason)}` : "";
    const answers = `${all} ${all === 1 ? "answer" : "answers"}`;
    const words: Record<Cascade["status"], string> = {
        running: `Answering again: ${done} of ${all} ready.`,
        waiting: `Answering again: ${done} of ${all} ready. ${waitOf(cascade)}`,
        done: `${answers} made again after an edit.`,
        declined: "The answers were not made again.",
        cancelled: "Answering again was cancelled. The old answers stay.",
        failed: `Answering again failed. The old answers stay.${why}`,
        undone: "The old answers are back.",
    };
    return words[status];
}

export function CascadeBar() {
    const session = useSession();
    const { state } = useOpenRoom();
    const { canSend } = useRoomAccess();
    const isSmall = useMatches(small);
    const [isBusy, setBusy] = useState(false);
    const [hidden, setHidden] = useState<string | null>(null);
    const cascade = shownCascade(state);
    if (!cascade || cascade.plan.length === 0) return null;
    const { cascade_id: id, status } = cascade;
    const key = `${id} ${status}`;
    const isOpen = isOpenCascade(cascade);
    if (!isOpen && (hidden === key || status === "undone" || status === "declined")) return null;
    const { done, all } = progressOf(cascade);
    const needsApproval = status === "waiting" && cascade.reason === "approval";

    const act = (action: CascadeAction) => {
        setBusy(true);
        actOnCascade(session.threadId, id, action)
            .then(
                (next) => session.putCascade(next),
                (error: unknown) => void toast(reasonOf(error), { kind: "error" }),
            )
            .finally(() => setBusy(false));
    };
    const button = (action: CascadeAction, label: string, kind: "primary" | "plain" = "plain") => (
        <Button kind={kind} disabled={isBusy} onClick={() => act(action)}>
            {label}
        </Button>
    );
    return (
        <section className={styles.bar} aria-label="Answering again" data-status={status}>
            <div className={styles.row}>
                <p role="status">{headingOf(cascade, done, all)}</p>
                {canSend && needsApproval && (
                    <div className={styles.actions}>
                        {button("approve", "Approve", "primary")}
                        {button("decline", "Decline")}
                    </div>
                )}
                {canSend &&
                    (status === "running" || (status === "waiting" && !needsApproval)) &&
                    button("cancel", "Cancel")}
                {canSend && status === "done" && button("undo", "Undo")}
                {!isOpen && (
                    <IconButton
                        icon="close"
                        label="Dismiss"
                        tip="right"
                        onClick={() => setHidden(key)}
                    />
                )}
            </div>
            {isOpen && (
                <progress aria-label="Answers that are ready" value={done} max={Math.max(all, 1)} />
            )}
            {isOpen && (
                <details open={needsApproval && !isSmall}>
                    <summary>Show the plan</summary>
                    <div>
                        <PlanList plan={cascade.plan} messages={state.messages} isRunning />
                    </div>
                </details>
            )}
        </section>
    );
}
