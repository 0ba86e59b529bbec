// The settings of a room. Its owner changes them.
import { useState } from "react";
import { nameOf, useAssistants } from "@/api/assistants";
import { reasonOf } from "@/api/client";
import { Button } from "@/ui/Button";
import { Dialog } from "@/ui/Dialog";
import { SelectField, Switch, TextField } from "@/ui/Field";
import { changeRoom } from "./api";
import { useRoomAccess, useSession } from "./context";
import styles from "./Panels.module.css";
import type { Room, RoomSettings } from "./types";

type Draft = Omit<RoomSettings, "agents">;

const draftOf = ({ default_assistant_id, context, cascade, agents_ask, answers, presence }: Room) =>
    ({ default_assistant_id, context, cascade, agents_ask, answers, presence }) satisfies Draft;

const numberOf = (text: string) => Math.max(0, Math.floor(Number(text)) || 0);

export function SettingsDialog({ room, onClose }: { room: Room; onClose(): void }) {
    const session = useSession();
    const { isOwner } = useRoomAccess();
    const { list } = useAssistants();
    const [draft, setDraft] = useState<Draft>(() => draftOf(room));
    const [problem, setProblem] = useState<string | null>(null);
    const put = (more: Partial<Draft>) => setDraft({ ...draft, ...more });
    const save = () =>
        changeRoom(session.threadId, draft).then(
            (next) => {
                session.putRoom(next);
                onClose();
            },
            (error: unknown) => setProblem(reasonOf(error)),
        );
    const number = (label: string, value: number, change: (value: number) => void) => (
        <TextField
            label={label}
            type="number"
            min={0}
            step={1}
            disabled={!isOwner}
            value={value}
            onChange={(event) => change(numberOf(event.target.value))}
        />
    );
    return (
        <Dialog
            title="Room settings"
            onClose={onClose}
            actions={
                <>
                    <Button onClick={onClose}>{isOwner ? "Cancel" : "Close"}</Button>
                    {isOwner && (
                        <Button kind="primary" icon="check" onClick={() => void save()}>
                            Save
                        </Button>
                    )}
                </>
            }
        >
            {!isOwner && <p className={styles.soft}>The owner of the room changes these.</p>}
            <SelectField
                label="Default agent"
                hint="It answers messages that name no agent."
                disabled={!isOwner}
                value={draft.default_assistant_id ?? ""}
                onChange={(event) => put({ default_assistant_id: event.target.value || null })}
            >
                <option value="">None: messages are chat only</option>
                {list.map((one) => (
                    <option key={one.assistant_id} value={one.assistant_id}>
                        {nameOf(one)}
                    </option>
                ))}
            </SelectField>
            <div className={styles.numbers}>
                {number("Earlier messages an agent reads", draft.context.messages, (messages) =>
                    put({ context: { ...draft.context, messages } }),
                )}
                {number("Answers made again without approval", draft.cascade.limit, (limit) =>
                    put({ cascade: { limit } }),
                )}
                {number("Agents may ask agents, in a row", draft.agents_ask.depth, (depth) =>
                    put({ agents_ask: { ...draft.agents_ask, depth } }),
                )}
                {number("At most so many runs in a row", draft.agents_ask.runs, (runs) =>
                    put({ agents_ask: { ...draft.agents_ask, runs } }),
                )}
            </div>
            <SelectField
                label="Questions of agents are answered by"
                disabled={!isOwner}
                value={draft.answers}
                onChange={(event) => put({ answers: event.target.value as Draft["answers"] })}
            >
                <option value="asker">the person who asked, or the owner</option>
                <option value="editors">anyone who can write</option>
            </SelectField>
            <Switch
                label="Show who is here and typing"
                isOn={draft.presence}
                isDisabled={!isOwner}
                onChange={(presence) => put({ presence })}
            />
            {problem && (
                <p className={styles.problem} role="alert">
                    {problem}
                </p>
            )}
        </Dialog>
    );
}
