// The view that creates, edits and tries assistants.
import type { Assistant } from "@langchain/langgraph-sdk";
import { useEffect, useRef, useState } from "react";
import { loadAssistants, nameOf, useAssistants } from "@/api/assistants";
import { client, reasonOf } from "@/api/client";
import { go, goToThread } from "@/app/route";
import { Button, IconButton } from "@/ui/Button";
import { Dialog } from "@/ui/Dialog";
import { toast } from "@/ui/toast";
import { AgentForm } from "./AgentForm";
import { AgentList } from "./AgentList";
import styles from "./AgentsView.module.css";
import { draftOf } from "./draft";
import { getDraft, keepDraft, NEW } from "./drafts";
import { loadSchema } from "./schema";

const open = (assistantId: string | null) => go({ view: "agents", assistantId });
const tryOut = (assistantId: string) => goToThread(null, { agent: assistantId });

async function duplicate(assistant: Assistant) {
    const schema = await loadSchema(assistant.graph_id).catch(() => null);
    const unsaved = getDraft(NEW);
    keepDraft(NEW, { ...draftOf(assistant, schema), name: `Copy of ${nameOf(assistant)}` });
    open(NEW);
    if (unsaved)
        toast("You have another unsaved new agent.", {
            action: { label: "Restore it", run: () => keepDraft(NEW, unsaved) },
        });
}

function DeleteDialog({ assistant, onClose }: { assistant: Assistant; onClose(): void }) {
    const [isBusy, setBusy] = useState(false);
    const remove = async () => {
        setBusy(true);
        try {
            await client.assistants.delete(assistant.assistant_id);
            keepDraft(assistant.assistant_id, null);
            await loadAssistants();
            onClose();
            open(null);
            toast(`Deleted ${nameOf(assistant)}.`);
        } catch (error) {
            setBusy(false);
            toast(reasonOf(error), { kind: "error" });
        }
    };
    return (
        <Dialog
            title={`Delete ${nameOf(assistant)}?`}
            onClose={onClose}
            actions={
                <>
                    <Button onClick={onClose}>Cancel</Button>
                    <Button
                        kind="danger"
                        icon="trash"
                        disabled={isBusy}
                        onClick={() => void remove()}
                    >
                        Delete
                    </Button>
                </>
            }
        >
            <p>
                This deletes all of its versions. Conversations with it remain, but you can no
                longer send it messages.
            </p>
        </Dialog>
    );
}

function Detail({
    assistantId,
    onDelete,
}: {
    assistantId: string;
    onDelete(assistant: Assistant): void;
}) {
    const { list, isLoading } = useAssistants();
    const assistant = list.find((one) => one.assistant_id === assistantId) ?? null;
    const heading = useRef<HTMLHeadingElement>(null);
    useEffect(() => heading.current?.focus(), [assistantId]);

    if (isLoading && list.length === 0)
        return (
            <p className={styles.soft} role="status">
                Loading…
            </p>
        );
    const isNew = assistantId === NEW;
    const title = isNew ? "New agent" : assistant ? nameOf(assistant) : "Not found";
    return (
        <section className={styles.detail} aria-label={title}>
            <header className={styles.title}>
                <IconButton
                    icon="back"
                    label="All agents"
                    tip="left"
                    className={styles.back}
                    onClick={() => open(null)}
                />
                <h2 ref={heading} tabIndex={-1}>
                    {title}
                </h2>
            </header>
            {isNew || assistant ? (
                <AgentForm
                    key={assistantId}
                    assistant={assistant}
                    list={list}
                    graphId={
                        list.find((one) => one.graph_id === "agent")?.graph_id ??
                        list[0]?.graph_id ??
                        "agent"
                    }
                    onSaved={open}
                    onTry={tryOut}
                    onDuplicate={() => assistant && void duplicate(assistant)}
                    onDelete={() => assistant && onDelete(assistant)}
                />
            ) : (
                <p className={styles.soft}>
                    This agent does not exist, or you do not have access to it.
                </p>
            )}
        </section>
    );
}

export function AgentsView({
    assistantId,
    onMenu,
}: {
    assistantId: string | null;
    onMenu(): void;
}) {
    const { list, isLoading, error } = useAssistants();
    const [leaving, setLeaving] = useState<Assistant | null>(null);
    useEffect(() => void loadAssistants(), []);
    return (
        <div className={styles.view} data-detail={assistantId !== null || undefined}>
            <h1 className="visually-hidden">Agents on this server</h1>
            <section className={styles.all} aria-labelledby="agents-title">
                <header className={styles.head}>
                    <IconButton
                        icon="menu"
                        label="Conversations"
                        tip="left"
                        className={styles.burger}
                        onClick={onMenu}
                    />
                    <h2 id="agents-title">Agents</h2>
                    <Button kind="primary" icon="plus" onClick={() => open(NEW)}>
                        New agent
                    </Button>
                </header>
                <div className={styles.scroll}>
                    {error !== null && list.length === 0 && (
                        <p className={styles.problem} role="alert">
                            Could not load the agents: {reasonOf(error)}
                            <Button icon="retry" onClick={() => void loadAssistants()}>
                                Try again
                            </Button>
                        </p>
                    )}
                    {isLoading && list.length === 0 && (
                        <p className={styles.soft} role="status">
                            Loading…
                        </p>
                    )}
                    {list.length > 0 && (
                        <AgentList
                            list={list}
                            chosen={assistantId}
                            onTry={(one) => tryOut(one.assistant_id)}
                            onDuplicate={(one) => void duplicate(one)}
                            onDelete={setLeaving}
                        />
                    )}
                </div>
            </section>
            {assistantId !== null ? (
                <Detail assistantId={assistantId} onDelete={setLeaving} />
            ) : (
                <p className={styles.empty}>Select an agent, or create a new one.</p>
            )}
            {leaving && <DeleteDialog assistant={leaving} onClose={() => setLeaving(null)} />}
        </div>
    );
}
