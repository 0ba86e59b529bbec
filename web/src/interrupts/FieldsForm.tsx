// A form built from values or from a JSON Schema. Validates before it sends.
import { useEffect, useRef, useState } from "react";
import { Button } from "@/ui/Button";
import { SelectField, Switch, TextArea, TextField } from "@/ui/Field";
import styles from "./FieldsForm.module.css";
import { errorOf, fieldsOf, parseJson, valuesOf, type FormField } from "./fields";
import { isMembers, type Json } from "./question";

interface InputProps {
    field: FormField;
    error: string | null;
    onChange(text: string): void;
}

function FieldInput({ field, error, onChange }: InputProps) {
    const common = { label: field.label, hint: field.hint || undefined, error };
    if (field.kind === "boolean")
        return (
            <Switch
                label={field.label}
                hint={field.hint}
                isOn={field.text === "true"}
                onChange={(isOn) => onChange(isOn ? "true" : "")}
            />
        );
    if (field.kind === "choice")
        return (
            <SelectField
                {...common}
                value={field.text}
                onChange={(event) => onChange(event.target.value)}
            >
                <option value="">Choose…</option>
                {field.choices.map((choice) => (
                    <option key={choice}>{choice}</option>
                ))}
            </SelectField>
        );
    if (field.kind === "number")
        return (
            <TextField
                {...common}
                inputMode="decimal"
                value={field.text}
                onChange={(event) => onChange(event.target.value)}
            />
        );
    const isLong = field.kind === "json" || field.text.length > 60 || field.text.includes("\n");
    if (!isLong)
        return (
            <TextField
                {...common}
                value={field.text}
                onChange={(event) => onChange(event.target.value)}
            />
        );
    const rows = Math.min(12, Math.max(3, field.text.split("\n").length));
    return (
        <div className={field.kind === "json" ? styles.code : undefined}>
            <TextArea
                {...common}
                rows={rows}
                value={field.text}
                spellCheck={field.kind === "text"}
                onChange={(event) => onChange(event.target.value)}
            />
        </div>
    );
}

interface FormProps {
    label: string;
    /** The initial fields; null: the values can only be edited as JSON. */
    fields: FormField[] | null;
    /** The initial JSON, if the values may be edited as JSON. */
    whole?: Json;
    submitLabel: string;
    cancelLabel?: string;
    /** False for a form that is visible from the start. */
    takesFocus?: boolean;
    onSubmit(values: Json): void;
    onCancel(): void;
}

export function FieldsForm(props: FormProps) {
    const {
        label,
        fields: first,
        whole,
        submitLabel,
        cancelLabel = "Cancel",
        takesFocus = true,
        onSubmit,
        onCancel,
    } = props;
    const [fields, setFields] = useState(first ?? []);
    const [json, setJson] = useState<string | null>(
        first ? null : JSON.stringify(whole ?? {}, null, 2),
    );
    const [isChecked, setChecked] = useState(false);
    const form = useRef<HTMLFormElement>(null);

    useEffect(() => {
        if (takesFocus)
            form.current?.querySelector<HTMLElement>("input, textarea, select, button")?.focus();
    }, [takesFocus]);

    const parsed = json === null ? null : parseJson(json);
    const errors = fields.map(errorOf);
    const isWrong = parsed ? "error" in parsed : errors.some(Boolean);

    const submit = () => {
        setChecked(true);
        if (isWrong) {
            // The error messages are rendered by then.
            requestAnimationFrame(() =>
                form.current?.querySelector<HTMLElement>("[aria-invalid]")?.focus(),
            );
            return;
        }
        onSubmit(parsed && "value" in parsed ? parsed.value : valuesOf(fields));
    };
    const toggle = () => {
        if (json === null)
            return setJson(
                JSON.stringify(errors.some(Boolean) ? (whole ?? {}) : valuesOf(fields), null, 2),
            );
        if (parsed && "value" in parsed && isMembers(parsed.value)) {
            setFields(fieldsOf(parsed.value));
            setJson(null);
        } else {
            setChecked(true);
        }
    };

    return (
        <form
            ref={form}
            className={styles.form}
            aria-label={label}
            noValidate
            onSubmit={(event) => {
                event.preventDefault();
                submit();
            }}
            onKeyDown={(event) => {
                if (event.key !== "Escape" || !takesFocus) return;
                event.stopPropagation();
                onCancel();
            }}
        >
            {json === null ? (
                fields.map((field, at) => (
                    <FieldInput
                        key={field.name}
                        field={field}
                        error={isChecked ? (errors[at] ?? null) : null}
                        onChange={(text) =>
                            setFields(fields.map((one, i) => (i === at ? { ...one, text } : one)))
                        }
                    />
                ))
            ) : (
                <div className={styles.code}>
                    <TextArea
                        label="Arguments as JSON"
                        rows={Math.min(16, Math.max(4, json.split("\n").length))}
                        spellCheck={false}
                        value={json}
                        onChange={(event) => setJson(event.target.value)}
                        error={isChecked && parsed && "error" in parsed ? parsed.error : null}
                    />
                </div>
            )}
            <div className={styles.actions}>
                <Button kind="primary" type="submit">
                    {submitLabel}
                </Button>
                <Button kind="quiet" onClick={onCancel}>
                    {cancelLabel}
                </Button>
                {whole !== undefined && first && (
                    <Button kind="quiet" className={styles.last} onClick={toggle}>
                        {json === null ? "Edit as JSON" : "Edit as fields"}
                    </Button>
                )}
            </div>
        </form>
    );
}
