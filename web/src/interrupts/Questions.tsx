// The requests of an agent, shown in place of its answer.
import type { Interrupt } from "@langchain/langgraph-sdk";
import { useEffect, useMemo, useRef, useState } from "react";
import { nameOf, useAssistants } from "@/api/assistants";
import type { AgentChat } from "@/chat/agentChat";
import { useOpenThread } from "@/chat/openThread";
import { Button } from "@/ui/Button";
import { Breakpoint } from "./Breakpoint";
import { Card } from "./Card";
import { passedOnBy, canAccept, questionOf, topicOf, type Answer, type Question } from "./question";
import styles from "./Questions.module.css";

/** Replies that are chosen but not sent, by request and item. */
type Given = ReadonlyMap<string, Answer>;

const nothing: Given = new Map();
const keyOf = (question: Question, item: number) => `${question.id}#${item}`;

function answersTo(question: Question, given: Given): Answer[] | null {
    const answers = question.items.flatMap((_, item) => given.get(keyOf(question, item)) ?? []);
    return answers.length === question.items.length ? answers : null;
}

export function useQuestions(interrupts: Interrupt[]): Question[] {
    return useMemo(() => interrupts.map(questionOf), [interrupts]);
}

/** A delegate's request is shown once: for the agent that called it and waits for the reply. */
function useOwnInterrupts(chat: AgentChat): { own: Interrupt[]; isDelegate: boolean } {
    const { chats } = useOpenThread();
    const others = chats
        .filter((one) => one.assistantId !== chat.assistantId)
        .flatMap((one) => one.interrupts);
    const passedOn = new Set(others.flatMap(passedOnBy));
    const isDelegate = others.some(
        (one) => questionOf(one, 0).items[0]?.delegate?.assistantId === chat.assistantId,
    );
    return { own: chat.interrupts.filter((one) => !passedOn.has(one.id ?? "")), isDelegate };
}

/** Moves the focus to the request, but never away from a text field or another part of the page. */
function mayTakeFocus(section: HTMLElement): boolean {
    const active = document.activeElement;
    if (!active || active === document.body || active.id === "main") return true;
    const isText = active instanceof HTMLTextAreaElement || active instanceof HTMLInputElement;
    if (isText && active.value !== "") return false;
    const conversation = section.closest("section[aria-label=Conversation]");
    return conversation?.contains(active) === true && !section.contains(active);
}

/** The chosen replies, and the functions that send them. */
function useAnswers(chat: AgentChat, questions: Question[]) {
    const [given, setGiven] = useState(nothing);
    const wasSent = useRef(false);
    const { phase, failure } = chat;

    // Sent replies are cleared unless sending failed.
    useEffect(() => {
        if (phase !== "idle" || !wasSent.current) return;
        wasSent.current = false;
        if (failure?.kind !== "send") setGiven(nothing);
    }, [phase, failure]);

    const send = (answers: Given) => {
        const resume: Record<string, unknown> = {};
        for (const question of questions) {
            const all = answersTo(question, answers);
            if (all) resume[question.id] = question.encode(all);
        }
        wasSent.current = true;
        void chat.resume(resume).catch(() => undefined); // the chat shows the error
    };
    const give = (question: Question, item: number, answer: Answer | null) => {
        const next = new Map(given);
        if (answer) next.set(keyOf(question, item), answer);
        else next.delete(keyOf(question, item));
        setGiven(next);
        if (questions.every((one) => answersTo(one, next))) send(next);
    };
    const acceptAll = () => {
        const next = new Map(given);
        for (const question of questions) {
            question.items.forEach((item, at) => {
                if (!next.has(keyOf(question, at)) && canAccept(item))
                    next.set(keyOf(question, at), { type: "accept" });
            });
        }
        setGiven(next);
        if (questions.every((one) => answersTo(one, next))) send(next);
    };
    return { given, give, send, acceptAll };
}

interface BarProps {
    questions: Question[];
    given: Given;
    onAcceptAll(): void;
    onSend(): void;
}

/** For several requests: the number of replies, and actions for all. */
function Bar({ questions, given, onAcceptAll, onSend }: BarProps) {
    const items = questions.flatMap((question) =>
        question.items.map((item, at) => ({ item, key: keyOf(question, at) })),
    );
    const open = items.filter(({ key }) => !given.has(key));
    const isAllAcceptable = open.length > 0 && open.every(({ item }) => canAccept(item));
    const ready = questions.filter((question) => answersTo(question, given)).length;
    return (
        <div className={styles.bar}>
            <p>
                {items.length - open.length} of {items.length} answered
            </p>
            {ready > 0 && (
                <Button onClick={onSend}>
                    {open.length === 0
                        ? "Send again"
                        : ready === 1
                          ? "Send 1 now"
                          : `Send ${ready} now`}
                </Button>
            )}
            {isAllAcceptable && (
                <Button kind="primary" icon="check" onClick={onAcceptAll}>
                    Accept all
                </Button>
            )}
        </div>
    );
}

export function Questions({ chat }: { chat: AgentChat }) {
    const { list } = useAssistants();
    const { activeId } = useOpenThread();
    const { own, isDelegate } = useOwnInterrupts(chat);
    const questions = useQuestions(own);
    const { given, give, send, acceptAll } = useAnswers(chat, questions);
    const section = useRef<HTMLElement>(null);
    const name = nameOf(list.find((one) => one.assistant_id === chat.assistantId));
    const count = questions.reduce((sum, question) => sum + question.items.length, 0);
    const hasRequests = count > 0;
    const isByComposer =
        count === 1 && chat.interrupts.length === 1 && activeId === chat.assistantId;
    const first = questions[0]?.items[0];
    const announcement = !first
        ? ""
        : count === 1
          ? `${name} is waiting for your reply to ${topicOf(first)}.`
          : `${name} is waiting for ${count} replies.`;

    useEffect(() => {
        if (!hasRequests || !section.current || !mayTakeFocus(section.current)) return;
        const heading = section.current.querySelector<HTMLElement>("h2");
        heading?.focus({ preventScroll: true });
        heading?.scrollIntoView({ block: "nearest" });
    }, [hasRequests]);

    return (
        <>
            <p className="visually-hidden" role="status">
                {announcement}
            </p>
            {hasRequests && (
                <section
                    ref={section}
                    className={styles.questions}
                    aria-label={`Requests from ${name}`}
                    aria-live="off"
                >
                    {questions.flatMap((question) =>
                        question.items.map((item, at) => (
                            <Card
                                key={keyOf(question, at)}
                                item={item}
                                assistantId={chat.assistantId}
                                name={name}
                                given={given.get(keyOf(question, at)) ?? null}
                                isAlone={count === 1}
                                isByComposer={isByComposer}
                                onAnswer={(answer) => give(question, at, answer)}
                            />
                        )),
                    )}
                    {(count > 1 || given.size === count) && (
                        <Bar
                            questions={questions}
                            given={given}
                            onAcceptAll={acceptAll}
                            onSend={() => send(given)}
                        />
                    )}
                </section>
            )}
            {!isDelegate && <Breakpoint chat={chat} name={name} />}
        </>
    );
}
