// The composer while a request is open: the text is the reply, or a new message that discards the
// request.
import type { Interrupt } from "@langchain/langgraph-sdk";
import { useEffect, useId, useState, type ReactNode } from "react";
import { nameOf, useAssistants } from "@/api/assistants";
import { useOpenThread } from "@/chat/openThread";
import { useHasOpenForm } from "./openForms";
import { canRespond, topicOf } from "./question";
import { useQuestions } from "./Questions";
import styles from "./reply.module.css";

const none: Interrupt[] = [];

export interface Reply {
    /** The next text is the reply. */
    isAnswering: boolean;
    placeholder: string;
    respond(text: string): Promise<void>;
    /** Explains what sending does and lets the user choose; above the text. */
    notice: ReactNode;
}

interface ChoiceProps {
    name: string;
    isAnswering: boolean;
    onChoose(isAnswering: boolean): void;
}

function Choice({ name, isAnswering, onChoose }: ChoiceProps) {
    const id = useId();
    return (
        <fieldset className={styles.notice}>
            <legend className="visually-hidden">{name} is waiting for your reply. Send as</legend>
            <span aria-hidden="true">{name} is waiting for your reply.</span>
            {[true, false].map((isAnswer) => (
                <label key={String(isAnswer)} className={styles.choice}>
                    <input
                        type="radio"
                        name={id}
                        checked={isAnswering === isAnswer}
                        onChange={() => onChoose(isAnswer)}
                    />
                    {isAnswer ? "Reply" : "New message (discards the request)"}
                </label>
            ))}
        </fieldset>
    );
}

/** null: the selected agent has no open request. */
export function useReply(): Reply | null {
    const { active } = useOpenThread();
    const { list } = useAssistants();
    const interrupts = active?.interrupts;
    const [drops, setDrops] = useState(false);
    const hasRequests = (interrupts?.length ?? 0) > 0;
    useEffect(() => setDrops(false), [hasRequests, active?.assistantId]);

    const questions = useQuestions(interrupts ?? none);
    const hasBox = useHasOpenForm();
    if (!active || !hasRequests) return null;
    const name = nameOf(list.find((one) => one.assistant_id === active.assistantId));
    const question = questions.length === 1 ? questions[0] : undefined;
    const item = question?.items.length === 1 ? question.items[0] : undefined;
    if (!question || !item || !canRespond(item) || hasBox) {
        const notice = (
            <p className={styles.notice}>
                {name} is waiting for your {item ? "reply" : "replies"} above. A new message
                discards the {item ? "request" : "requests"}.
            </p>
        );
        return { isAnswering: false, placeholder: "", respond: async () => undefined, notice };
    }
    const topic = item.kind === "call" ? item.name : topicOf(item);
    return {
        isAnswering: !drops,
        placeholder: `Reply to ${topic}…`,
        respond: (text) =>
            active.resume({ [question.id]: question.encode([{ type: "respond", text }]) }),
        notice: (
            <Choice name={name} isAnswering={!drops} onChoose={(isAnswer) => setDrops(!isAnswer)} />
        ),
    };
}
