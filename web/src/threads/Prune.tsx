import { useState } from "react";
import { reasonOf } from "@/api/client";
import { Button } from "@/ui/Button";
import { toast } from "@/ui/toast";
import { noteThreadChange } from "./changes";
import { sizeOf } from "./dates";
import { prune, type PruneStrategy, type Removed } from "./details";
import { Section } from "./DetailsDialog";
import styles from "./DetailsDialog.module.css";

const strategies: Record<PruneStrategy, string> = {
    keep_branches: "Keep the latest checkpoint of each branch",
    keep_latest: "Keep only the latest checkpoint",
};

const counted = (count: number, noun: string) => `${count} ${noun}${count === 1 ? "" : "s"}`;

/** Frees space: shows a preview first, and removes only on a second click. */
export function Prune({ threadId, onPruned }: { threadId: string; onPruned(): void }) {
    const [strategy, setStrategy] = useState<PruneStrategy>("keep_branches");
    const [plan, setPlan] = useState<Removed | null>(null);
    const [problem, setProblem] = useState<string | null>(null);
    const [isBusy, setBusy] = useState(false);

    const run = async (work: () => Promise<void>) => {
        setBusy(true);
        setProblem(null);
        try {
            await work();
        } catch (error) {
            setProblem(reasonOf(error));
        } finally {
            setBusy(false);
        }
    };
    const look = () => run(async () => setPlan(await prune(threadId, strategy, true)));
    const go = () =>
        run(async () => {
            await prune(threadId, strategy, false);
            toast(plan ? `Freed ${sizeOf(plan.bytes)}` : "Pruned");
            setPlan(null);
            noteThreadChange();
            onPruned();
        });

    return (
        <Section title="Prune">
            <p className={styles.soft}>
                Removes old checkpoints. Messages are kept, but you can no longer go back to removed
                checkpoints.
            </p>
            <div className={styles.row}>
                <select
                    aria-label="Keep"
                    value={strategy}
                    onChange={(event) => {
                        setStrategy(event.target.value as PruneStrategy);
                        setPlan(null);
                    }}
                >
                    {(Object.keys(strategies) as PruneStrategy[]).map((one) => (
                        <option key={one} value={one}>
                            {strategies[one]}
                        </option>
                    ))}
                </select>
                <Button disabled={isBusy} onClick={() => void look()}>
                    Preview
                </Button>
            </div>
            {plan && (
                <div className={styles.row} role="status">
                    {plan.checkpoints > 0 ? (
                        <>
                            <span>
                                {counted(plan.checkpoints, "checkpoint")} and{" "}
                                {counted(plan.writes, "write")} would be removed:{" "}
                                {sizeOf(plan.bytes)}.
                            </span>
                            <Button kind="danger" disabled={isBusy} onClick={() => void go()}>
                                Remove
                            </Button>
                        </>
                    ) : (
                        <span>Nothing to remove.</span>
                    )}
                </div>
            )}
            {problem && (
                <p className={styles.error} role="alert">
                    {problem}
                </p>
            )}
        </Section>
    );
}
