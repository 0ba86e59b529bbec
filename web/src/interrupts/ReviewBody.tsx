// Research results: approve them, or send them back with a remark.
import { useState } from "react";
import { Button } from "@/ui/Button";
import { ArgTable } from "./ArgTable";
import { useOpenForm } from "./openForms";
import type { BodyProps } from "./Card";
import styles from "./Card.module.css";
import { isMembers, type Json, type ReviewItem } from "./question";
import { RespondForm } from "./RespondForm";

function Result({ result }: { result: Json }) {
    if (!isMembers(result))
        return (
            <li>
                <ArgTable value={result} label="Result" />
            </li>
        );
    const { title, summary, source_url: url } = result;
    return (
        <li>
            <h3>{typeof title === "string" && title ? title : "Result"}</h3>
            {typeof summary === "string" && <p>{summary}</p>}
            {typeof url === "string" && /^https?:\/\//.test(url) && (
                <p>
                    <a href={url} target="_blank" rel="noopener noreferrer">
                        {url}
                    </a>
                </p>
            )}
        </li>
    );
}

export function ReviewBody({ item, onAnswer }: BodyProps<ReviewItem>) {
    const [isRefusing, setRefusing] = useState(false);
    useOpenForm(isRefusing);
    return (
        <>
            {item.message && <p className={styles.note}>{item.message}</p>}
            {item.summary && <p className={styles.text}>{item.summary}</p>}
            {item.results.length > 0 && (
                <ol className={styles.results} aria-label="Results" tabIndex={0}>
                    {item.results.map((result, at) => (
                        <Result key={at} result={result} />
                    ))}
                </ol>
            )}
            {isRefusing ? (
                <RespondForm
                    label="What is missing"
                    hint="The agent revises its result with this remark."
                    submitLabel="Send back"
                    mayBeEmpty
                    onSubmit={(text) => onAnswer({ type: "respond", text })}
                    onCancel={() => setRefusing(false)}
                />
            ) : (
                <div className={styles.actions}>
                    <Button
                        kind="primary"
                        icon="check"
                        onClick={() => onAnswer({ type: "accept" })}
                    >
                        Approve
                    </Button>
                    <Button icon="retry" onClick={() => setRefusing(true)}>
                        Send back
                    </Button>
                </div>
            )}
        </>
    );
}
