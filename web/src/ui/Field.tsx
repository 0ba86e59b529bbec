// Labelled inputs, with a hint or an error below them.
import {
    useId,
    type InputHTMLAttributes,
    type ReactNode,
    type SelectHTMLAttributes,
    type TextareaHTMLAttributes,
} from "react";
import styles from "./Field.module.css";

interface Labelled {
    label: string;
    hint?: ReactNode;
    error?: string | null;
}

/** The attributes that connect an input to its label and note. */
interface Bound {
    id: string;
    className: string | undefined;
    "aria-invalid": true | undefined;
    "aria-describedby": string | undefined;
}

function Frame({ label, hint, error, input }: Labelled & { input(bound: Bound): ReactNode }) {
    const id = useId();
    const note = error || hint;
    return (
        <div className={styles.field}>
            <label htmlFor={id}>{label}</label>
            {input({
                id,
                className: styles.input,
                "aria-invalid": error ? true : undefined,
                "aria-describedby": note ? `${id}-hint` : undefined,
            })}
            {note && (
                <p
                    id={`${id}-hint`}
                    className={error ? styles.error : styles.hint}
                    role={error ? "alert" : undefined}
                >
                    {note}
                </p>
            )}
        </div>
    );
}

type TextFieldProps = Labelled & InputHTMLAttributes<HTMLInputElement>;

export function TextField({ label, hint, error, ...rest }: TextFieldProps) {
    const input = (bound: Bound) => <input {...bound} {...rest} />;
    return <Frame label={label} hint={hint} error={error} input={input} />;
}

type TextAreaProps = Labelled & TextareaHTMLAttributes<HTMLTextAreaElement>;

export function TextArea({ label, hint, error, ...rest }: TextAreaProps) {
    const input = (bound: Bound) => <textarea {...bound} {...rest} />;
    return <Frame label={label} hint={hint} error={error} input={input} />;
}

type SelectFieldProps = Labelled & SelectHTMLAttributes<HTMLSelectElement>;

export function SelectField({ label, hint, error, ...rest }: SelectFieldProps) {
    const input = (bound: Bound) => <select {...bound} {...rest} />;
    return <Frame label={label} hint={hint} error={error} input={input} />;
}

interface SwitchProps {
    label: string;
    hint?: string;
    isOn: boolean;
    isDisabled?: boolean;
    onChange(isOn: boolean): void;
}

export function Switch({ label, hint, isOn, isDisabled, onChange }: SwitchProps) {
    const id = useId();
    return (
        <div className={styles.switch}>
            <input
                id={id}
                type="checkbox"
                checked={isOn}
                disabled={isDisabled}
                aria-describedby={hint ? `${id}-hint` : undefined}
                onChange={(event) => onChange(event.target.checked)}
            />
            <label htmlFor={id}>{label}</label>
            {hint && (
                <p id={`${id}-hint`} className={styles.hint}>
                    {hint}
                </p>
            )}
        </div>
    );
}
