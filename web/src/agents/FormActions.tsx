// The actions of the assistant form.
import { Button } from "@/ui/Button";
import styles from "./AgentForm.module.css";

interface ActionsProps {
    /** null: a new assistant. */
    version: number | null;
    isSystem: boolean;
    isDirty: boolean;
    isSaving: boolean;
    onDelete(): void;
    onTry(): void;
    onDiscard(): void;
}

function stateOf({ version, isDirty, isSaving }: ActionsProps): string {
    if (isSaving) return "Saving…";
    if (isDirty) return "Not saved yet";
    return version === null ? "" : `Version ${version}`;
}

export function FormActions(props: ActionsProps) {
    const { version, isSystem, isDirty, isSaving, onDelete, onTry, onDiscard } = props;
    const isNew = version === null;
    return (
        <div className={styles.actions}>
            <p className={styles.state} role="status">
                {stateOf(props)}
            </p>
            {!isNew && !isSystem && (
                <Button kind="danger" icon="trash" onClick={onDelete}>
                    Delete
                </Button>
            )}
            {isDirty && (
                <Button kind="quiet" onClick={onDiscard}>
                    Discard changes
                </Button>
            )}
            <Button disabled={isSaving} onClick={onTry}>
                {isDirty ? "Save and try" : "Try"}
            </Button>
            {!isSystem && (
                <Button kind="primary" type="submit" disabled={isSaving || (!isDirty && !isNew)}>
                    Save
                </Button>
            )}
        </div>
    );
}
