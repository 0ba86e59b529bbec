// One setting of a graph, as its schema describes it. Empty: the server's default.
import { SelectField, TextArea, TextField } from "@/ui/Field";
import styles from "./AgentForm.module.css";
import type { Setting } from "./draft";

interface FieldProps {
    setting: Setting;
    value: string;
    error: string | undefined;
    onChange(value: string): void;
}

const MODELS = "heddle-models";

export function SettingField({ setting, value, error, onChange }: FieldProps) {
    const { name, label, hint, kind, preset } = setting;
    const common = { label, hint, error, value };
    if (name === "model_name")
        return (
            <>
                <TextField
                    {...common}
                    placeholder={preset}
                    list={MODELS}
                    spellCheck={false}
                    autoComplete="off"
                    onChange={(event) => onChange(event.target.value)}
                />
                <datalist id={MODELS}>
                    {[
                        "openai:gpt-4o",
                        "openai:gpt-4o-mini",
                        "anthropic:claude-sonnet-4-5",
                        "google:gemini-2.5-flash",
                    ].map((model) => (
                        <option key={model} value={model} />
                    ))}
                </datalist>
            </>
        );
    if (name.endsWith("prompt"))
        return (
            <TextArea
                {...common}
                rows={6}
                placeholder={preset}
                onChange={(event) => onChange(event.target.value)}
            />
        );
    if (kind === "boolean")
        return (
            <SelectField {...common} onChange={(event) => onChange(event.target.value)}>
                <option value="">
                    Server default{preset ? `: ${preset === "true" ? "yes" : "no"}` : ""}
                </option>
                <option value="true">Yes</option>
                <option value="false">No</option>
            </SelectField>
        );
    if (kind === "json")
        return (
            <div className={styles.code}>
                <TextArea
                    {...common}
                    rows={value ? 5 : 2}
                    spellCheck={false}
                    onChange={(event) => onChange(event.target.value)}
                />
            </div>
        );
    return (
        <TextField
            {...common}
            placeholder={preset}
            inputMode={kind === "text" ? undefined : "decimal"}
            onChange={(event) => onChange(event.target.value)}
        />
    );
}
