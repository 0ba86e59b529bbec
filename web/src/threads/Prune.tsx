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
    keep_branches: "Keep all branches, only their ends",
    keep_latest: "Keep the latest state alone",
};

const counted = (count: number, noun: string) => `${count} ${noun}${count === 1 ? "" : "s"}`;

/** Gives space back: what would go is told first, and nothing goes without a second click. */
export function Prune({ threadId, onPruned }: { threadId: string; onPruned(): void }) {
    const [strategy, setStrategy] = useState<PruneStrategy>("keep_branches");
    const [plan, setPlan] = useState<Removed | null>(null);
    const [problem, setProblem] = useState<string | null>(null);
    const [isAsking, setAsking] = useState(false);

    const run = async (work: () => Promise<void>) => {
        setAsking(true);
        setProblem(null);
        try {
            await work();
        } catch (error) {
            setProblem(reasonOf(error));
        } finally {
            setAsking(false);
        }
    };
    const look = () => run(async () => setPlan(await prune(threadId, strategy, true)));
    const go = () =>
        run(async () => {
            await prune(threadId, strategy, false);
            toast(plan ? `${sizeOf(plan.bytes)} given back` : "Pruned");
            setPlan(null);
            noteThreadChange();
            onPruned();
        });

    return (
        <Section title="Prune">
            <p className={styles.soft}>
                Removes old checkpoints. What was said stays; going back to removed points is not
                possible any more.
            </p>
            <div className={styles.row}>
                <select
                    aria-label="What stays"
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
                <Button disabled={isAsking} onClick={() => void look()}>
                    See what would go
                </Button>
            </div>
            {plan && (
                <div className={styles.row} role="status">
                    {plan.checkpoints > 0 ? (
                        <>
                            <span>
                                {counted(plan.checkpoints, "checkpoint")} and{" "}
                                {counted(plan.writes, "write")} would go: {sizeOf(plan.bytes)}.
                            </span>
                            <Button kind="danger" disabled={isAsking} onClick={() => void go()}>
                                Remove them
                            </Button>
                        </>
                    ) : (
                        <span>Nothing would go.</span>
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
