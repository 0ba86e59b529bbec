// A tool call that needs approval: its arguments and the allowed replies.
import { useEffect, useRef, useState } from "react";
import { Markdown } from "@/chat/Markdown";
import { Button } from "@/ui/Button";
import { ArgTable } from "./ArgTable";
import { useOpenForm } from "./openForms";
import type { BodyProps } from "./Card";
import styles from "./Card.module.css";
import { FieldsForm } from "./FieldsForm";
import { fieldsOf } from "./fields";
import { isMembers, type CallItem } from "./question";
import { RespondForm } from "./RespondForm";

/** Omits a description that repeats the heading. */
function isTelling(item: CallItem): boolean {
    return (
        item.description !== "" &&
        item.description !== `The agent wants to call the tool \`${item.name}\`.`
    );
}

export function CallBody({ item, onAnswer }: BodyProps<CallItem>) {
    const [mode, setMode] = useState<"read" | "edit" | "respond">("read");
    useOpenForm(mode !== "read");
    const actions = useRef<HTMLDivElement>(null);
    const cameFrom = useRef<string | null>(null);
    const can = (type: CallItem["replyTypes"][number]) => item.replyTypes.includes(type);

    // Returns the focus after closing a form.
    useEffect(() => {
        if (mode === "read" && cameFrom.current)
            actions.current
                ?.querySelector<HTMLElement>(`[data-reply=${cameFrom.current}]`)
                ?.focus();
        cameFrom.current = mode === "read" ? null : mode;
    }, [mode]);

    if (mode === "edit") {
        const fields = isMembers(item.args) ? fieldsOf(item.args) : null;
        return (
            <FieldsForm
                label={`Arguments of ${item.name}`}
                fields={fields}
                whole={item.args}
                submitLabel="Accept with changes"
                onSubmit={(args) => onAnswer({ type: "edit", args })}
                onCancel={() => setMode("read")}
            />
        );
    }
    return (
        <>
            {isTelling(item) && (
                <div className={styles.description}>
                    <Markdown text={item.description} keepsLines />
                </div>
            )}
            <div className={styles.box}>
                <ArgTable value={item.args} label={`Arguments of ${item.name}`} />
            </div>
            {mode === "respond" ? (
                <div className={styles.actions}>
                    <RespondFormOf
                        item={item}
                        onAnswer={onAnswer}
                        onCancel={() => setMode("read")}
                    />
                </div>
            ) : (
                <div ref={actions} className={styles.actions}>
                    {can("accept") && (
                        <Button
                            kind="primary"
                            icon="check"
                            onClick={() => onAnswer({ type: "accept" })}
                        >
                            Accept
                        </Button>
                    )}
                    {can("edit") && (
                        <Button icon="edit" data-reply="edit" onClick={() => setMode("edit")}>
                            Edit
                        </Button>
                    )}
                    {can("respond") && (
                        <Button data-reply="respond" onClick={() => setMode("respond")}>
                            {item.rejects ? "Reject with a reason" : "Respond"}
                        </Button>
                    )}
                    {can("ignore") && (
                        <Button
                            kind="quiet"
                            className={styles.last}
                            onClick={() => onAnswer({ type: "ignore" })}
                        >
                            {item.form === "decision" ? "Reject" : "Ignore"}
                        </Button>
                    )}
                    {item.replyTypes.length === 0 && (
                        <p className={styles.note}>No reply is allowed here.</p>
                    )}
                </div>
            )}
        </>
    );
}

interface RespondProps extends Pick<BodyProps<CallItem>, "item" | "onAnswer"> {
    onCancel(): void;
}

function RespondFormOf({ item, onAnswer, onCancel }: RespondProps) {
    return (
        <RespondForm
            label={item.rejects ? "Reason" : "Your response"}
            submitLabel={item.rejects ? "Reject" : "Send response"}
            hint={
                item.rejects
                    ? "The agent receives this reason."
                    : `The agent receives this instead of the result of ${item.name}.`
            }
            onSubmit={(text) => onAnswer({ type: "respond", text })}
            onCancel={onCancel}
        />
    );
}
