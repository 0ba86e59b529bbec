// Writing while a question waits: the text is the answer, or a new message that leaves the question
// behind.
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
    /** What is sent next is the answer. */
    isAnswering: boolean;
    placeholder: string;
    respond(text: string): Promise<void>;
    /** Says what will happen, and lets choose; above the text. */
    notice: ReactNode;
}

interface ChoiceProps {
    name: string;
    topic: string;
    isAnswering: boolean;
    onChoose(isAnswering: boolean): void;
}

function Choice({ name, topic, isAnswering, onChoose }: ChoiceProps) {
    const id = useId();
    return (
        <fieldset className={styles.notice}>
            <legend className="visually-hidden">{name} waits for an answer. Send as</legend>
            <span aria-hidden="true">{name} waits. Send as</span>
            {[true, false].map((isAnswer) => (
                <label key={String(isAnswer)} className={styles.choice}>
                    <input
                        type="radio"
                        name={id}
                        checked={isAnswering === isAnswer}
                        onChange={() => onChoose(isAnswer)}
                    />
                    {isAnswer ? <>the answer to {topic}</> : "a new message (drops the question)"}
                </label>
            ))}
        </fieldset>
    );
}

/** null: the agent that is spoken to waits for nothing. */
export function useReply(): Reply | null {
    const { active } = useOpenThread();
    const { list } = useAssistants();
    const interrupts = active?.interrupts;
    const [drops, setDrops] = useState(false);
    const isAsked = (interrupts?.length ?? 0) > 0;
    useEffect(() => setDrops(false), [isAsked, active?.assistantId]);

    const questions = useQuestions(interrupts ?? none);
    const hasBox = useHasOpenForm();
    if (!active || !isAsked) return null;
    const name = nameOf(list.find((one) => one.assistant_id === active.assistantId));
    const question = questions.length === 1 ? questions[0] : undefined;
    const item = question?.items.length === 1 ? question.items[0] : undefined;
    if (!question || !item || !canRespond(item) || hasBox) {
        const notice = (
            <p className={styles.notice}>
                {item ? `${name} waits for an answer above.` : `${name} waits for answers above.`} A
                new message leaves {item ? "it" : "them"} unanswered.
            </p>
        );
        return { isAnswering: false, placeholder: "", respond: async () => undefined, notice };
    }
    const topic = item.kind === "call" ? item.name : topicOf(item);
    return {
        isAnswering: !drops,
        placeholder: `Answer ${topic}…`,
        respond: (text) =>
            active.resume({ [question.id]: question.encode([{ way: "respond", text }]) }),
        notice: (
            <Choice
                name={name}
                topic={topic}
                isAnswering={!drops}
                onChoose={(isAnswer) => setDrops(!isAnswer)}
            />
        ),
    };
}
