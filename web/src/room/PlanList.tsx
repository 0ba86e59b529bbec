// The runs of a cascade in their order: what is answered again, and why.
import { nameOf, useAssistants } from "@/api/assistants";
import { Face } from "./Face";
import styles from "./PlanList.module.css";
import { stateOf, whyOf } from "./planWords";
import { excerptOf } from "./text";
import type { ChatMessage, Step } from "./types";

interface PlanListProps {
    plan: readonly Step[];
    messages: readonly ChatMessage[];
    /** It has begun: steps show how far they are. */
    isRunning: boolean;
}

export function PlanList({ plan, messages, isRunning }: PlanListProps) {
    const { list } = useAssistants();
    return (
        <ol className={styles.list} aria-label="Answers to make again">
            {plan.map((step) => {
                const answer = messages.find((one) => one.id === step.answer);
                const name =
                    answer?.sender.name ??
                    nameOf(list.find((one) => one.assistant_id === step.assistant_id));
                const { text, kind } = stateOf(step, isRunning);
                return (
                    <li key={step.run_id} className={styles.step}>
                        <Face
                            sender={{ type: "agent", id: step.assistant_id, name }}
                            size="small"
                        />
                        <span className={styles.text}>
                            <strong>{name}</strong>
                            {answer ? `: ${excerptOf(answer)}` : ""}
                        </span>
                        <span className={styles.state} data-kind={kind}>
                            {text}
                        </span>
                        <span className={styles.why}>{whyOf(step)}</span>
                    </li>
                );
            })}
        </ol>
    );
}
