// The status at the end of a chat: a running agent, an answer that was not stored, errors, and
// requests.
import { useId } from "react";
import { AgentBadge } from "@/agents/AgentBadge";
import type { Receipt } from "@/api/heddle";
import { nameOf, useAssistants } from "@/api/assistants";
import { Questions } from "@/interrupts/Questions";
import { useAccess } from "@/threads/access";
import { Button } from "@/ui/Button";
import { Icon } from "@/ui/icons";
import type { AgentChat } from "./agentChat";
import styles from "./ChatStatus.module.css";
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

function UnstoredAnswer({ chat }: { chat: AgentChat }) {
    const { list } = useAssistants();
    const note = useId();
    const partial = chat.stopped?.partial ?? chat.failure?.partial ?? null;
    const { text = "" } = partial ? partsOf(partial) : {};
    if (!text) return null;
    const name = nameOf(list.find((one) => one.assistant_id === chat.assistantId));
    return (
        <article className={styles.unkept} aria-label={name} aria-describedby={note}>
            <Markdown text={text} isGrowing />
            <p id={note} className={styles.mark}>
                Not stored: the agent does not see this text.
            </p>
        </article>
    );
}

function lastHuman(chat: AgentChat): string | null {
    const humans = chat.messages.filter((message) => message.type === "human");
    return humans.at(-1)?.id ?? null;
}

function Stopped({ chat }: { chat: AgentChat }) {
    const { canWrite } = useAccess();
    const human = lastHuman(chat);
    if (!chat.stopped) return null;
    return (
        <div className={styles.notice} role="status">
            <p>
                <Icon name="stop" size={16} /> {receiptText(chat.stopped.receipt)}
            </p>
            {canWrite && (
                <div className={styles.actions}>
                    {human && (
                        <Button icon="retry" onClick={() => void chat.retry(human)}>
                            Retry
                        </Button>
                    )}
                    <Button kind="primary" icon="forward" onClick={() => void chat.continueRun()}>
                        Continue
                    </Button>
                </div>
            )}
        </div>
    );
}

const titles = {
    run: "The agent failed.",
    load: "Loading failed.",
    send: "The message was not sent.",
} as const;

function Failed({ chat }: { chat: AgentChat }) {
    const { failure } = chat;
    const { canWrite } = useAccess();
    if (!failure || chat.unsent.size > 0) return null; // an unsent message shows its own error
    return (
        <div className={styles.notice} data-kind="failure" role="alert">
            <p>
                <Icon name="warning" size={16} /> <strong>{titles[failure.kind]}</strong>{" "}
                {sentence(failure.reason)}
            </p>
            {(canWrite || failure.kind === "load") && (
                <div className={styles.actions}>
                    <Button
                        icon="retry"
                        onClick={() =>
                            void (failure.kind === "load" ? chat.reload() : chat.resend())
                        }
                    >
                        Retry
                    </Button>
                </div>
            )}
        </div>
    );
}

/** No part of the answer is visible yet, or a tool is running. */
function isWaitedFor(chat: AgentChat): boolean {
    if (chat.isOnOtherBranch || (chat.phase !== "working" && chat.phase !== "stopping"))
        return false;
    const last = chat.messages.at(-1);
    if (!last || last.type !== "ai") return true;
    const { text, reasoning } = partsOf(last);
    return callsOf(last).length > 0 || (!text && !reasoning);
}

function Waiting({ chat }: { chat: AgentChat }) {
    if (!isWaitedFor(chat)) return null;
    return (
        <div className={styles.waiting} aria-hidden="true">
            <AgentBadge assistantId={chat.assistantId} />
            <span className={styles.dots}>
                <i />
                <i />
                <i />
            </span>
        </div>
    );
}

export function ChatStatus({ chat }: { chat: AgentChat }) {
    return (
        <>
            <UnstoredAnswer chat={chat} />
            <Waiting chat={chat} />
            <Stopped chat={chat} />
            <Failed chat={chat} />
            <Questions chat={chat} />
        </>
    );
}
