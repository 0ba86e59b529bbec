// A form or a URL that an MCP server requests.
import { Button } from "@/ui/Button";
import type { BodyProps } from "./Card";
import styles from "./Card.module.css";
import { FieldsForm } from "./FieldsForm";
import { fieldsOfSchema } from "./fields";
import type { FormItem } from "./question";

export function FormBody({ item, onAnswer }: BodyProps<FormItem>) {
    const fields = fieldsOfSchema(item.fields, item.required);
    const decline = () => onAnswer({ type: "ignore" });
    const isSafe = item.url !== null && /^https?:\/\//.test(item.url);
    return (
        <>
            {item.message && <p className={styles.text}>{item.message}</p>}
            {item.url && (
                <p className={styles.text}>
                    {isSafe ? (
                        <a href={item.url} target="_blank" rel="noopener noreferrer">
                            {item.url}
                        </a>
                    ) : (
                        item.url
                    )}
                </p>
            )}
            {fields.length > 0 ? (
                <FieldsForm
                    label={item.server}
                    fields={fields}
                    submitLabel="Send"
                    cancelLabel="Decline"
                    takesFocus={false}
                    onSubmit={(args) => onAnswer({ type: "edit", args })}
                    onCancel={decline}
                />
            ) : (
                <div className={styles.actions}>
                    <Button kind="primary" onClick={() => onAnswer({ type: "accept" })}>
                        {item.url ? "Done" : "Accept"}
                    </Button>
                    <Button kind="quiet" onClick={decline}>
                        Decline
                    </Button>
                </div>
            )}
        </>
    );
}
