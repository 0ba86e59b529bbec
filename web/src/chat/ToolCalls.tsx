// Tool calls, collapsed: arguments and result.
import type { Message } from "@langchain/langgraph-sdk";
import { useState } from "react";
import { Button } from "@/ui/Button";
import { Icon, type IconName } from "@/ui/icons";
import { callsOf, resultText, shortArgs, type Call } from "./parts";
import styles from "./ToolCalls.module.css";

/** A call without a result: running, waiting for approval, or abandoned. */
export type Pending = "running" | "waiting" | "none";
type Status = Pending | "done" | "failed";

const words: Record<Status, string> = {
    running: "Running",
    waiting: "Waiting",
    done: "Done",
    failed: "Failed",
    none: "No result",
};
const icons: Record<Status, IconName> = {
    running: "clock",
    waiting: "clock",
    done: "check",
    failed: "warning",
    none: "more",
};

const SHOWN = 4000;

function statusOf(call: Call, result: Message | undefined, pending: Pending): Status {
    if (call.isInvalid) return "failed";
    if (!result) return pending;
    return result.type === "tool" && result.status === "error" ? "failed" : "done";
}

/** A text that may be very long: shows the start until the user expands it. */
function LongText({ label, text }: { label: string; text: string }) {
    const [isWhole, setWhole] = useState(false);
    const isCut = !isWhole && text.length > SHOWN;
    return (
        <>
            <p className={styles.label} aria-hidden="true">
                {label}
            </p>
            <pre className={styles.text} tabIndex={0} role="region" aria-label={label}>
                {isCut ? `${text.slice(0, SHOWN)}…` : text}
            </pre>
            {isCut && (
                <Button kind="quiet" onClick={() => setWhole(true)}>
                    Show all {text.length.toLocaleString("en")} characters
                </Button>
            )}
        </>
    );
}

function argsText(args: unknown): string {
    return typeof args === "string" ? args : JSON.stringify(args ?? {}, null, 2);
}

function isEmpty(args: unknown): boolean {
    return (
        args === undefined ||
        args === null ||
        (typeof args === "object" && Object.keys(args).length === 0)
    );
}

function ToolCall({
    call,
    result,
    pending,
}: {
    call: Call;
    result: Message | undefined;
    pending: Pending;
}) {
    const status = statusOf(call, result, pending);
    return (
        <details className={styles.call} data-status={status}>
            <summary className={styles.summary}>
                <Icon name="tool" size={16} />
                <span className={styles.name}>{call.name}</span>
                <span className={styles.args}>{shortArgs(call.args)}</span>
                <span className={styles.status}>
                    <Icon name={icons[status]} size={14} /> {words[status]}
                </span>
            </summary>
            <div className={styles.body}>
                {!isEmpty(call.args) && <LongText label="Arguments" text={argsText(call.args)} />}
                {call.isInvalid && (
                    <p className={styles.problem}>
                        The arguments are not valid JSON: the tool was not called.
                    </p>
                )}
                {result && <LongText label="Result" text={resultText(result.content)} />}
                {!result && status === "none" && <p>The tool has not returned a result.</p>}
            </div>
        </details>
    );
}

interface CallsProps {
    message: Message;
    results: Message[];
    /** The tools may still return a result. */
    pending: Pending;
}

export function ToolCalls({ message, results, pending }: CallsProps) {
    const calls = callsOf(message);
    if (calls.length === 0) return null;
    const answerTo = (call: Call) =>
        results.find((result) => result.type === "tool" && result.tool_call_id === call.id);
    return (
        <div className={styles.calls}>
            {calls.map((call) => (
                <ToolCall key={call.id} call={call} result={answerTo(call)} pending={pending} />
            ))}
        </div>
    );
}

/** The result of a tool call that is not shown. */
export function LoneResult({ message }: { message: Message }) {
    const name = message.type === "tool" ? message.name : null;
    return (
        <details
            className={styles.call}
            data-status={message.type === "tool" && message.status === "error" ? "failed" : "done"}
        >
            <summary className={styles.summary}>
                <Icon name="tool" size={16} />
                <span className={styles.name}>{name || "tool"}</span>
                <span className={styles.args} />
                <span className={styles.status}>Result</span>
            </summary>
            <div className={styles.body}>
                <LongText label="Result" text={resultText(message.content)} />
            </div>
        </details>
    );
}
