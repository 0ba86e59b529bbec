import { useState } from "react";
import { reasonOf } from "@/api/client";
import { Button } from "@/ui/Button";
import { fullDate, until } from "./dates";
import { setTimeToLive, type TimeToLive } from "./details";
import { Section } from "./DetailsDialog";
import styles from "./DetailsDialog.module.css";

const DAY = 24 * 60;
const offered: [string, number | null][] = [
    ["Never", null],
    ["1 day", DAY],
    ["7 days", 7 * DAY],
    ["30 days", 30 * DAY],
];

function choiceOf(ttl: TimeToLive | null): string {
    if (!ttl) return "Never";
    return offered.find(([, minutes]) => minutes === ttl.ttl)?.[0] ?? "own";
}

/** The time to live of the conversation. */
export function Expiry({
    threadId,
    ttl,
    onChange,
}: {
    threadId: string;
    ttl: TimeToLive | null;
    onChange(): void;
}) {
    const kept = choiceOf(ttl);
    const [choice, setChoice] = useState(kept);
    const [own, setOwn] = useState(String(kept === "own" ? ttl?.ttl : 60));
    const [problem, setProblem] = useState<string | null>(null);

    const set = async (minutes: number | null) => {
        setProblem(null);
        try {
            await setTimeToLive(threadId, minutes);
            onChange();
        } catch (error) {
            setProblem(reasonOf(error));
        }
    };
    const choose = (next: string) => {
        setChoice(next);
        const found = offered.find(([label]) => label === next);
        if (found) void set(found[1]);
    };
    const minutes = Number(own);
    const isGood = Number.isFinite(minutes) && minutes > 0;
    return (
        <Section title="Time to live">
            <p className={styles.soft}>
                {ttl?.expires_at
                    ? `Deleted ${until(ttl.expires_at, new Date())}, on ${fullDate(ttl.expires_at)}, unless it is used before then.`
                    : "Kept until it is deleted."}
            </p>
            <div className={styles.row}>
                <select
                    aria-label="Delete when unused for"
                    value={choice}
                    onChange={(event) => choose(event.target.value)}
                >
                    {offered.map(([label]) => (
                        <option key={label}>{label}</option>
                    ))}
                    <option value="own">Custom time</option>
                </select>
                {choice === "own" && (
                    <>
                        <input
                            type="number"
                            min="1"
                            step="any"
                            aria-label="Minutes"
                            value={own}
                            onChange={(event) => setOwn(event.target.value)}
                        />
                        <span>minutes</span>
                        <Button disabled={!isGood} onClick={() => void set(minutes)}>
                            Set
                        </Button>
                    </>
                )}
            </div>
            {problem && (
                <p className={styles.error} role="alert">
                    {problem}
                </p>
            )}
        </Section>
    );
}
