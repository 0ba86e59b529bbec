// One request: its agent, its subject, and the allowed replies.
import { useEffect, useId, useRef, useState, type ReactNode } from "react";
import { AgentBadge } from "@/agents/AgentBadge";
import { colourOf } from "@/agents/colours";
import { Button } from "@/ui/Button";
import { Icon, type IconName } from "@/ui/icons";
import styles from "./Card.module.css";
import { CallBody } from "./CallBody";
import { FormBody } from "./FormBody";
import { OtherBody } from "./OtherBody";
import type { Answer, Item } from "./question";
import { ReviewBody } from "./ReviewBody";

interface CardProps {
    item: Item;
    assistantId: string;
    name: string;
    /** The chosen reply, until the other requests have one. */
    given: Answer | null;
    isAlone: boolean;
    /** The composer sends the reply. */
    isByComposer: boolean;
    onAnswer(answer: Answer | null): void;
}

export interface BodyProps<T extends Item> {
    item: T;
    isByComposer: boolean;
    onAnswer(answer: Answer): void;
}

const icons: Record<Item["kind"], IconName> = {
    call: "tool",
    review: "inspect",
    form: "edit",
    pause: "stop",
    other: "agents",
};

function titleOf(item: Item): ReactNode {
    if (item.kind === "call")
        return (
            <>
                wants to use <code>{item.name}</code>
            </>
        );
    if (item.kind === "review") return "requests a review";
    if (item.kind === "form")
        return (
            <>
                needs input for <code>{item.server}</code>
            </>
        );
    return item.kind === "pause" ? "is paused" : "asks";
}

function Body({ item, ...rest }: BodyProps<Item>) {
    const { onAnswer } = rest;
    if (item.kind === "call") return <CallBody item={item} {...rest} />;
    if (item.kind === "review") return <ReviewBody item={item} {...rest} />;
    if (item.kind === "form") return <FormBody item={item} {...rest} />;
    if (item.kind === "other") return <OtherBody item={item} {...rest} />;
    return (
        <div className={styles.actions}>
            <Button kind="primary" icon="forward" onClick={() => onAnswer({ type: "accept" })}>
                Continue
            </Button>
        </div>
    );
}

function outcomeOf(given: Answer, item: Item): string {
    if (given.type === "accept") return item.kind === "pause" ? "Continues" : "Accepted";
    if (given.type === "edit") return "Accepted with changes";
    if (given.type === "ignore")
        return item.kind === "call" && item.form === "decision" ? "Rejected" : "Ignored";
    return "Replied";
}

/** The chosen reply while other requests are still open. */
function Chosen({ given, item, onChange }: { given: Answer; item: Item; onChange(): void }) {
    const line = useRef<HTMLParagraphElement>(null);
    useEffect(() => line.current?.focus(), []);
    return (
        <div className={styles.chosen}>
            <p ref={line} tabIndex={-1}>
                <Icon name="check" size={16} /> {outcomeOf(given, item)}. Sent with the other
                replies.
            </p>
            <Button kind="quiet" onClick={onChange}>
                Change
            </Button>
        </div>
    );
}

export function Card(props: CardProps) {
    const { item, assistantId, name, given, isAlone, isByComposer, onAnswer } = props;
    const id = useId();
    // a chosen reply is collapsed unless it is being changed
    const [isOpen, setOpen] = useState(true);
    const agentId = item.delegate?.assistantId ?? assistantId;
    const answer = (next: Answer) => {
        setOpen(false);
        onAnswer(next);
    };
    return (
        <div
            role="group"
            className={styles.card}
            aria-labelledby={id}
            style={{ "--agent": colourOf(agentId) } as React.CSSProperties}
        >
            <header className={styles.head}>
                <span className={styles.icon}>
                    <Icon name={icons[item.kind]} size={16} />
                </span>
                <h2 id={id} tabIndex={-1}>
                    <AgentBadge assistantId={agentId} name={item.delegate?.name ?? name} />{" "}
                    {titleOf(item)}
                </h2>
                {item.delegate && <p className={styles.through}>requested by {name}</p>}
            </header>
            {item.error && (
                <p className={styles.error} role="alert">
                    The last reply was not accepted: {item.error}
                </p>
            )}
            {given && !isOpen && !isAlone ? (
                <Chosen
                    given={given}
                    item={item}
                    onChange={() => {
                        setOpen(true);
                        onAnswer(null);
                    }}
                />
            ) : (
                <Body item={item} isByComposer={isByComposer} onAnswer={answer} />
            )}
        </div>
    );
}
