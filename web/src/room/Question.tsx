// The questions of an agent, answered in place by a reply.
import { useMemo, useState } from "react";
import { reasonOf } from "@/api/client";
import { Card } from "@/interrupts/Card";
import { questionOf, type Answer } from "@/interrupts/question";
import { Button } from "@/ui/Button";
import { toast } from "@/ui/toast";
import { withdrawQuestion } from "./api";
import { useRoomAccess, useSession } from "./context";
import styles from "./Message.module.css";
import { replyText } from "./replies";
import type { ChatMessage } from "./types";

export function Question({ message }: { message: ChatMessage }) {
    const session = useSession();
    const { canSend } = useRoomAccess();
    const questions = useMemo(
        () =>
            Object.values(message.interrupts ?? {})
                .flat()
                .map(questionOf),
        [message.interrupts],
    );
    const items = questions.flatMap((question) =>
        question.items.map((item, at) => ({ item, question, at })),
    );
    const [given, setGiven] = useState<ReadonlyMap<number, Answer>>(new Map());

    const answer = (index: number, next: Answer | null) => {
        const all = new Map(given);
        if (next) all.set(index, next);
        else all.delete(index);
        setGiven(all);
        if (all.size < items.length) return;
        setGiven(new Map());
        session.answer(message.id, replyText(items, all), valueOf(all));
    };
    /** One question: its value; several: the values by the id of the question. */
    const valueOf = (all: ReadonlyMap<number, Answer>): unknown => {
        const values = questions.map((question) =>
            question.encode(
                items.flatMap((one, index) =>
                    one.question === question ? (all.get(index) ?? []) : [],
                ),
            ),
        );
        if (questions.length === 1) return values[0];
        return Object.fromEntries(questions.map((question, at) => [question.id, values[at]]));
    };
    const withdraw = () =>
        withdrawQuestion(message.thread_id, message.id).then(
            (done) => session.putMessage(done.message),
            (error: unknown) => void toast(`Not withdrawn. ${reasonOf(error)}`, { kind: "error" }),
        );

    return (
        <section
            className={styles.questions}
            aria-label={`Requests from ${message.sender.name}`}
            inert={!canSend}
        >
            {items.map(({ item, question, at }, index) => (
                <Card
                    key={`${question.id}#${at}`}
                    item={item}
                    assistantId={message.sender.id}
                    name={message.sender.name}
                    given={given.get(index) ?? null}
                    isAlone={items.length === 1}
                    isByComposer={false}
                    onAnswer={(next) => answer(index, next)}
                />
            ))}
            <div className={styles.note}>
                <Button kind="quiet" onClick={() => void withdraw()}>
                    Withdraw the question
                </Button>
            </div>
        </section>
    );
}
