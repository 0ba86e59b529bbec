// Code with its language, and a button that copies it.
import { memo, useMemo } from "react";
import { CopyButton } from "@/threads/CopyButton";
import styles from "./CodeBlock.module.css";
import { highlight } from "./highlight";

export const CodeBlock = memo(function CodeBlock({
    code,
    language,
}: {
    code: string;
    language: string;
}) {
    const name = language.trim().split(/\s/)[0] ?? "";
    const pieces = useMemo(() => highlight(code, name), [code, name]);
    return (
        <figure className={styles.block}>
            <figcaption className={styles.head}>
                <span className={styles.language}>{name || "text"}</span>
                <CopyButton text={code} label="Copy code" />
            </figcaption>
            <pre
                className={styles.code}
                tabIndex={0}
                role="region"
                aria-label={name ? `Code, ${name}` : "Code"}
            >
                <code>
                    {pieces.map(({ kind, text }, at) =>
                        kind === "plain" ? (
                            text
                        ) : (
                            <span key={at} className={styles[kind]}>
                                {text}
                            </span>
                        ),
                    )}
                </code>
            </pre>
        </figure>
    );
});
