// Another answer of an agent: the plan of what follows from it is shown before it acts.
import { useEffect, useState } from "react";
import { reasonOf } from "@/api/client";
import { Button } from "@/ui/Button";
import { Dialog } from "@/ui/Dialog";
import { planRetry, retryMessage } from "./api";
import { useOpenRoom, useSession } from "./context";
import { PlanList } from "./PlanList";
import styles from "./PlanList.module.css";
import { summaryOf } from "./planWords";
import type { ChatMessage, Plan } from "./types";

export function RetryDialog({ message, onClose }: { message: ChatMessage; onClose(): void }) {
    const session = useSession();
    const { state } = useOpenRoom();
    const [plan, setPlan] = useState<Plan | null>(null);
    const [problem, setProblem] = useState<string | null>(null);
    const [isBusy, setBusy] = useState(false);
    const { thread_id: threadId, id } = message;
    useEffect(() => {
        planRetry(threadId, id).then(setPlan, (error: unknown) => setProblem(reasonOf(error)));
    }, [threadId, id]);
    const go = () => {
        setBusy(true);
        retryMessage(threadId, id)
            .then(
                (done) => {
                    session.putMessage(done.message);
                    session.putCascade(done.cascade);
                    onClose();
                },
                (error: unknown) => setProblem(reasonOf(error)),
            )
            .finally(() => setBusy(false));
    };
    return (
        <Dialog
            title="Make this answer again?"
            onClose={onClose}
            isWide
            actions={
                <>
                    <Button kind="quiet" onClick={onClose}>
                        Cancel
                    </Button>
                    <Button
                        kind="primary"
                        icon="retry"
                        disabled={isBusy || !plan || plan.possible === 0}
                        onClick={go}
                    >
                        Answer again
                    </Button>
                </>
            }
        >
            {!plan && !problem && <p role="status">Loading…</p>}
            {plan && (
                <>
                    <p>{summaryOf(plan)}</p>
                    <PlanList plan={plan.plan} messages={state.messages} isRunning={false} />
                </>
            )}
            {problem && (
                <p className={styles.problem} role="alert">
                    {problem}
                </p>
            )}
        </Dialog>
    );
}
