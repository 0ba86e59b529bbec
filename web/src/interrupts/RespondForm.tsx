// A text reply.
import { useEffect, useRef, useState } from "react";
import { Button } from "@/ui/Button";
import { TextArea } from "@/ui/Field";
import styles from "./Card.module.css";

interface RespondProps {
    label: string;
    hint?: string;
    submitLabel: string;
    mayBeEmpty?: boolean;
    onSubmit(text: string): void;
    onCancel?(): void;
}

export function RespondForm({
    label,
    hint,
    submitLabel,
    mayBeEmpty = false,
    onSubmit,
    onCancel,
}: RespondProps) {
    const [text, setText] = useState("");
    const form = useRef<HTMLFormElement>(null);
    const isOpened = onCancel !== undefined; // opened by a button, which has the focus
    useEffect(() => {
        if (isOpened) form.current?.querySelector("textarea")?.focus();
    }, [isOpened]);
    const isReady = mayBeEmpty || text.trim() !== "";
    return (
        <form
            ref={form}
            onSubmit={(event) => {
                event.preventDefault();
                if (isReady) onSubmit(text);
            }}
            onKeyDown={(event) => {
                if (event.key === "Enter" && (event.ctrlKey || event.metaKey) && isReady)
                    onSubmit(text);
                if (event.key !== "Escape" || !onCancel) return;
                event.stopPropagation();
                onCancel();
            }}
        >
            <TextArea
                label={label}
                hint={hint}
                rows={3}
                value={text}
                onChange={(event) => setText(event.target.value)}
            />
            <div className={styles.actions}>
                <Button kind="primary" type="submit" disabled={!isReady}>
                    {submitLabel}
                </Button>
                {onCancel && (
                    <Button kind="quiet" onClick={onCancel}>
                        Cancel
                    </Button>
                )}
            </div>
        </form>
    );
}
