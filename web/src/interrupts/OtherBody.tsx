// Any other request: shown as JSON or text, answered with a text or JSON.
import { useState } from "react";
import { Button } from "@/ui/Button";
import { Switch, TextArea } from "@/ui/Field";
import { ArgTable } from "./ArgTable";
import { useOpenForm } from "./openForms";
import type { BodyProps } from "./Card";
import styles from "./Card.module.css";
import { parseJson } from "./fields";
import type { OtherItem } from "./question";

export function OtherBody({ item, isByComposer, onAnswer }: BodyProps<OtherItem>) {
    const [text, setText] = useState("");
    const [isJson, setJson] = useState(false);
    const isOpen = !isByComposer || isJson; // the composer takes a text reply where possible
    useOpenForm(isByComposer && isJson);
    const [error, setError] = useState<string | null>(null);

    const submit = () => {
        if (!isJson) return onAnswer({ type: "respond", text });
        const parsed = parseJson(text);
        if ("error" in parsed) return setError(parsed.error);
        onAnswer({ type: "value", value: parsed.value });
    };
    return (
        <>
            {item.text && <p className={styles.text}>{item.text}</p>}
            {item.rest !== undefined && (
                <div className={styles.box}>
                    <ArgTable value={item.rest} label="Question" />
                </div>
            )}
            <form
                className={isJson ? styles.code : undefined}
                onSubmit={(event) => {
                    event.preventDefault();
                    if (text.trim()) submit();
                }}
                onKeyDown={(event) => {
                    if (event.key === "Enter" && (event.ctrlKey || event.metaKey) && text.trim())
                        submit();
                }}
            >
                {isOpen && (
                    <TextArea
                        label={isJson ? "Reply as JSON" : "Reply"}
                        rows={2}
                        value={text}
                        error={error}
                        spellCheck={!isJson}
                        onChange={(event) => {
                            setText(event.target.value);
                            setError(null);
                        }}
                    />
                )}
                <div className={styles.row}>
                    {isOpen ? (
                        <Button kind="primary" type="submit" disabled={!text.trim()}>
                            Send reply
                        </Button>
                    ) : (
                        <p className={styles.hint}>Write your reply below.</p>
                    )}
                    <Switch label="As JSON" isOn={isJson} onChange={setJson} />
                </div>
            </form>
        </>
    );
}
