// Renames a branch in place. An empty name removes the name.
import { useEffect, useRef, useState } from "react";
import { IconButton } from "@/ui/Button";
import styles from "./RenameForm.module.css";

const LONGEST = 100;

interface RenameProps {
    name: string;
    onSave(name: string | null): Promise<void>;
    onCancel(): void;
}

export function RenameForm({ name, onSave, onCancel }: RenameProps) {
    const [text, setText] = useState(name);
    const [isSaving, setSaving] = useState(false);
    const input = useRef<HTMLInputElement>(null);
    useEffect(() => input.current?.select(), []);
    return (
        <form
            className={styles.form}
            aria-label="Rename the branch"
            onSubmit={(event) => {
                event.preventDefault();
                if (isSaving) return;
                setSaving(true);
                void onSave(text.trim() || null);
            }}
            onKeyDown={(event) => {
                if (event.key !== "Escape") return;
                event.stopPropagation();
                onCancel();
            }}
        >
            <input
                ref={input}
                className={styles.input}
                aria-label="Branch name"
                placeholder="No name"
                value={text}
                maxLength={LONGEST}
                autoComplete="off"
                onChange={(event) => setText(event.target.value)}
            />
            <IconButton icon="check" label="Save the name" type="submit" aria-disabled={isSaving} />
            <IconButton icon="close" label="Cancel" tip="right" onClick={onCancel} />
        </form>
    );
}
