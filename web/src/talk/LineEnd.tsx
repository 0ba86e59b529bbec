// What stands at the end of a line: the agent at work, an answer that was not kept, and why; what
// it asks.
import { useId } from "react";
import { AgentBadge } from "@/agents/AgentBadge";
import type { Receipt } from "@/api/heddle";
import { nameOf, useAssistants } from "@/api/assistants";
import { Questions } from "@/ask/Questions";
import { useAccess } from "@/threads/access";
import { Button } from "@/ui/Button";
import { Icon } from "@/ui/icons";
import type { Line } from "./line";
import styles from "./LineEnd.module.css";
import { Markdown } from "./Markdown";
import { callsOf, partsOf } from "./parts";
import { sentence } from "./text";

const plural = (count: number, word: string) => `${count} ${word}${count === 1 ? "" : "s"}`;

/** `Stopped at step 2, 37 tokens streamed. Tool search was stopped.` */
export function receiptText(receipt: Receipt | null): string {
    if (!receipt) return "The answer was stopped.";
    const { stopped_at_step: step, tokens_streamed: tokens, tools_in_flight: tools } = receipt;
    const where = step === null ? "Stopped before it began" : `Stopped at step ${step}`;
    const names = tools.map((tool) => tool.name).join(", ");
    const lost =
        tools.length === 0
            ? ""
            : tools.length === 1
              ? ` Tool ${names} was stopped.`
              : ` Tools ${names} were stopped.`;
    return `${where}, ${plural(tokens, "token")} streamed.${lost}`;
}

function Unkept({ line }: { line: Line }) {
    const { list } = useAssistants();
    const note = useId();
    const partial = line.stopped?.partial ?? line.failure?.partial ?? null;
    const { text = "" } = partial ? partsOf(partial) : {};
    if (!text) return null;
    const name = nameOf(list.find((one) => one.assistant_id === line.assistantId));
    return (
        <article className={styles.unkept} aria-label={name} aria-describedby={note}>
            <Markdown text={text} isGrowing />
            <p id={note} className={styles.mark}>
                Not kept: the agent does not know that it said this.
            </p>
        </article>
    );
}

function lastHuman(line: Line): string | null {
    const said = line.messages.filter((message) => message.type === "human");
    return said.at(-1)?.id ?? null;
}

function Stopped({ line }: { line: Line }) {
    const { canWrite } = useAccess();
    const human = lastHuman(line);
    if (!line.stopped) return null;
    return (
        <div className={styles.notice} role="status">
            <p>
                <Icon name="stop" size={16} /> {receiptText(line.stopped.receipt)}
            </p>
            {canWrite && (
                <div className={styles.ways}>
                    {human && (
                        <Button icon="retry" onClick={() => void line.retry(human)}>
                            Retry
                        </Button>
                    )}
                    <Button kind="primary" icon="forward" onClick={() => void line.goOn()}>
                        Continue
                    </Button>
                </div>
            )}
        </div>
    );
}

const titles = {
    run: "The agent failed.",
    load: "This can't be loaded.",
    send: "That was not sent.",
} as const;

function Failed({ line }: { line: Line }) {
    const { failure } = line;
    const { canWrite } = useAccess();
    if (!failure || line.unsent.size > 0) return null; // a message that was not sent says so itself
    return (
        <div className={styles.notice} data-kind="failure" role="alert">
            <p>
                <Icon name="warning" size={16} /> <strong>{titles[failure.kind]}</strong>{" "}
                {sentence(failure.reason)}
            </p>
            {(canWrite || failure.kind === "load") && (
                <div className={styles.ways}>
                    <Button
                        icon="retry"
                        onClick={() =>
                            void (failure.kind === "load" ? line.reload() : line.again())
                        }
                    >
                        Retry
                    </Button>
                </div>
            )}
        </div>
    );
}

/** Nothing is seen of the answer yet, or a tool is at work. */
function isWaitedFor(line: Line): boolean {
    if (line.isElsewhere || (line.phase !== "working" && line.phase !== "stopping")) return false;
    const last = line.messages.at(-1);
    if (!last || last.type !== "ai") return true;
    const { text, reasoning } = partsOf(last);
    return callsOf(last).length > 0 || (!text && !reasoning);
}

function Waiting({ line }: { line: Line }) {
    if (!isWaitedFor(line)) return null;
    return (
        <div className={styles.waiting} aria-hidden="true">
            <AgentBadge assistantId={line.assistantId} />
            <span className={styles.dots}>
                <i />
                <i />
                <i />
            </span>
        </div>
    );
}

export function LineEnd({ line }: { line: Line }) {
    return (
        <>
            <Unkept line={line} />
            <Waiting line={line} />
            <Stopped line={line} />
            <Failed line={line} />
            <Questions line={line} />
        </>
    );
}
