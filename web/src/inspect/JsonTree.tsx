// JSON as a collapsible tree: only open nodes are rendered, so a large value costs nothing until it
// is opened.
import { useState } from "react";
import { CopyButton } from "@/threads/CopyButton";
import styles from "./JsonTree.module.css";
import { labelOf } from "./diff";

const PAGE = 50;
const LONG = 200;

type Parent = Record<string, unknown> | unknown[];

const isParent = (value: unknown): value is Parent => value !== null && typeof value === "object";

/** A short summary of the value. */
function summaryOf(value: Parent): string {
    const label = labelOf(value);
    if (label !== undefined) return label;
    if (Array.isArray(value)) return value.length === 1 ? "1 element" : `${value.length} elements`;
    const names = Object.keys(value);
    if (names.length === 0) return "{}";
    return `${names.slice(0, 4).join(", ")}${names.length > 4 ? ", …" : ""}`;
}

function Text({ text }: { text: string }) {
    const [isWhole, setWhole] = useState(false);
    const isLong = text.length > LONG;
    const shown = isWhole || !isLong ? text : `${text.slice(0, LONG)}…`;
    return (
        <span className={styles.string}>
            “{shown}”
            {isLong && (
                <button
                    type="button"
                    className={styles.more}
                    aria-expanded={isWhole}
                    onClick={() => setWhole(!isWhole)}
                >
                    {isWhole ? "less" : `all ${text.length} characters`}
                </button>
            )}
        </span>
    );
}

function Leaf({ name, value }: { name: string; value: unknown }) {
    return (
        <div className={styles.leaf}>
            <span className={styles.name}>{name}</span>
            {typeof value === "string" ? (
                <Text text={value} />
            ) : (
                <span className={styles.plain}>{String(value)}</span>
            )}
        </div>
    );
}

function Members({ value }: { value: Parent }) {
    const [count, setCount] = useState(PAGE);
    const entries = Object.entries(value);
    const rest = entries.length - count;
    return (
        <>
            <ul className={styles.members}>
                {entries.slice(0, count).map(([name, member]) => (
                    <li key={name}>
                        <JsonNode name={name} value={member} />
                    </li>
                ))}
            </ul>
            {rest > 0 && (
                <button
                    type="button"
                    className={styles.more}
                    onClick={() => setCount(count + PAGE)}
                >
                    {Math.min(rest, PAGE)} of {rest} more
                </button>
            )}
        </>
    );
}

export function JsonNode({
    name,
    value,
    isOpen = false,
}: {
    name: string;
    value: unknown;
    isOpen?: boolean;
}) {
    const [open, setOpen] = useState(isOpen);
    if (!isParent(value) || Object.keys(value).length === 0)
        return (
            <Leaf
                name={name}
                value={isParent(value) ? (Array.isArray(value) ? "[]" : "{}") : value}
            />
        );
    return (
        <details
            className={styles.node}
            open={open}
            onToggle={(event) => setOpen(event.currentTarget.open)}
        >
            <summary>
                <span className={styles.name}>{name}</span>
                <span className={styles.summary}>{summaryOf(value)}</span>
            </summary>
            {open && (
                <div className={styles.inner}>
                    <div className={styles.copy}>
                        <CopyButton
                            text={() => JSON.stringify(value, null, 2)}
                            label={`Copy ${name}`}
                        />
                    </div>
                    <Members value={value} />
                </div>
            )}
        </details>
    );
}
