// Edits a message of the user in place. Parts that are not text are kept.
import { useEffect, useId, useLayoutEffect, useRef, useState, type KeyboardEvent } from "react";
import type { Content } from "@/chat/agentChat";
import { textOf } from "@/chat/text";
import { Button } from "@/ui/Button";
import { withText } from "./content";
import styles from "./TurnEditor.module.css";

interface EditorProps {
    content: Content;
    onSave(content: Content): void;
    onCancel(): void;
}

export function TurnEditor({ content, onSave, onCancel }: EditorProps) {
    const [text, setText] = useState(() => textOf(content));
    const area = useRef<HTMLTextAreaElement>(null);
    const hint = useId();
    const images =
        typeof content === "string" ? [] : content.filter((block) => block.type === "image_url");
    const canSave = text.trim() !== "" || images.length > 0;

    useEffect(() => {
        const { current } = area;
        current?.focus();
        current?.setSelectionRange(current.value.length, current.value.length);
    }, []);
    useLayoutEffect(() => {
        const { current } = area;
        if (!current) return;
        current.style.height = "auto";
        current.style.height = `${current.scrollHeight + current.offsetHeight - current.clientHeight}px`;
    }, [text]);

    const save = () => {
        if (canSave) onSave(withText(content, text));
    };
    const onKeyDown = (event: KeyboardEvent) => {
        if (event.nativeEvent.isComposing) return;
        if (event.key === "Escape") {
            event.preventDefault();
            event.stopPropagation();
            onCancel();
        } else if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) {
            event.preventDefault();
            save();
        }
    };

    return (
        <form
            className={styles.editor}
            aria-label="Edit message"
            onKeyDown={onKeyDown}
            onSubmit={(event) => {
                event.preventDefault();
                save();
            }}
        >
            <textarea
                ref={area}
                className={styles.text}
                dir="auto"
                aria-label="Edited message"
                aria-describedby={hint}
                rows={1}
                value={text}
                onChange={(event) => setText(event.target.value)}
            />
            <div className={styles.foot}>
                <p id={hint} className={styles.hint}>
                    {images.length > 0 &&
                        `${images.length === 1 ? "The image is kept" : "The images are kept"}. `}
                    The earlier version is kept.
                </p>
                <Button onClick={onCancel}>Cancel</Button>
                <Button kind="primary" type="submit" disabled={!canSave} title="Ctrl+Enter">
                    Send again
                </Button>
            </div>
        </form>
    );
}
