// Editing an own message: the plan of what follows from it is shown before it acts.
import { useEffect, useId, useRef, useState, type KeyboardEvent } from "react";
import { reasonOf, statusOf } from "@/api/client";
import { Button } from "@/ui/Button";
import { Dialog } from "@/ui/Dialog";
import { Switch } from "@/ui/Field";
import { toast } from "@/ui/toast";
import { editMessage, planEdit, type Edit } from "./api";
import { useOpenRoom, useSession } from "./context";
import styles from "./Message.module.css";
import planStyles from "./PlanList.module.css";
import { PlanList } from "./PlanList";
import { summaryOf } from "./planWords";
import { plainText } from "./text";
import type { ChatMessage, Content, Plan } from "./types";

/** The new text in place of the old one; attachments stay. */
function withText(content: Content | null, text: string): Content {
    if (!Array.isArray(content)) return text;
    const others = content.filter((block) => block.type !== "text");
    return [{ type: "text", text }, ...others];
}

interface PlanDialogProps {
    plan: Plan;
    isBusy: boolean;
    problem: string | null;
    onGo(how: Pick<Edit, "cascade" | "if_running">): void;
    onClose(): void;
}

function PlanDialog({ plan, isBusy, problem, onGo, onClose }: PlanDialogProps) {
    const { state } = useOpenRoom();
    const [interrupts, setInterrupts] = useState(false);
    const how = interrupts ? { if_running: "interrupt" as const } : {};
    return (
        <Dialog
            title="What follows from this edit"
            onClose={onClose}
            isWide
            actions={
                <>
                    <Button kind="quiet" onClick={onClose}>
                        Cancel
                    </Button>
                    <Button disabled={isBusy} onClick={() => onGo({ cascade: "none", ...how })}>
                        Only change the text
                    </Button>
                    <Button
                        kind="primary"
                        icon="check"
                        disabled={isBusy || plan.possible === 0}
                        onClick={() => onGo({ cascade: "auto", ...how })}
                    >
                        Save and answer again
                    </Button>
                </>
            }
        >
            <p>{summaryOf(plan)}</p>
            <PlanList plan={plan.plan} messages={state.messages} isRunning={false} />
            <p className={planStyles.soft}>
                Readers see the old answers until all new ones are ready. Without new answers the
                old ones are marked as out of date.
            </p>
            {problem && (
                <>
                    <p className={planStyles.problem} role="alert">
                        {problem}
                    </p>
                    <Switch
                        label="Stop a run that is answering this message now"
                        isOn={interrupts}
                        onChange={setInterrupts}
                    />
                </>
            )}
        </Dialog>
    );
}

export function MessageEditor({ message, onDone }: { message: ChatMessage; onDone(): void }) {
    const session = useSession();
    const [text, setText] = useState(() => plainText(message));
    const [plan, setPlan] = useState<Plan | null>(null);
    const [problem, setProblem] = useState<string | null>(null);
    const [isBusy, setBusy] = useState(false);
    const area = useRef<HTMLTextAreaElement>(null);
    const hint = useId();
    useEffect(() => {
        area.current?.focus();
        area.current?.setSelectionRange(text.length, text.length);
        // the text is that of the message when the editor opens
    }, []);

    const content = withText(message.content, text);
    const isChanged = text.trim() !== "" && text !== plainText(message);
    const run = async (work: () => Promise<void>) => {
        setBusy(true);
        setProblem(null);
        try {
            await work();
        } catch (error) {
            setProblem(reasonOf(error));
            if (statusOf(error) !== 409) setPlan(null);
        } finally {
            setBusy(false);
        }
    };
    const save = (how: Pick<Edit, "cascade" | "if_running">) =>
        run(async () => {
            const edited = await editMessage(message.thread_id, message.id, { content, ...how });
            session.putMessage(edited.message);
            session.putCascade(edited.cascade);
            onDone();
            if (edited.cascade?.status === "waiting") toast("Some answers wait for your approval.");
        });
    const look = () =>
        run(async () => {
            const next = await planEdit(message.thread_id, message.id, { content });
            if (next.plan.length === 0) return save({});
            setPlan(next);
        });
    const onKeyDown = (event: KeyboardEvent) => {
        if (event.nativeEvent.isComposing) return;
        if (event.key === "Escape") onDone();
        if (event.key !== "Enter" || event.shiftKey) return;
        event.preventDefault();
        if (isChanged) void look();
    };

    return (
        <div className={styles.editor}>
            <textarea
                ref={area}
                aria-label="Edited message"
                aria-describedby={hint}
                dir="auto"
                value={text}
                onChange={(event) => setText(event.target.value)}
                onKeyDown={onKeyDown}
            />
            <p id={hint} className="visually-hidden">
                Enter saves, Escape cancels.
            </p>
            <div className={styles.actions}>
                <Button kind="quiet" onClick={onDone}>
                    Cancel
                </Button>
                <Button kind="primary" disabled={!isChanged || isBusy} onClick={() => void look()}>
                    Save
                </Button>
            </div>
            {problem && !plan && (
                <p className={styles.problem} role="alert">
                    {problem}
                </p>
            )}
            {plan && (
                <PlanDialog
                    plan={plan}
                    isBusy={isBusy}
                    problem={problem}
                    onGo={(how) => void save(how)}
                    onClose={() => setPlan(null)}
                />
            )}
        </div>
    );
}
