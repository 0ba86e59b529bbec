import { useCallback, useEffect, useState } from "react";
import { reasonOf } from "@/api/client";
import { useSettings } from "@/signin/settings";
import { Button, IconButton } from "@/ui/Button";
import {
    addParticipant,
    getParticipants,
    removeParticipant,
    setRole,
    type Participant,
} from "./details";
import { Section } from "./DetailsDialog";
import styles from "./DetailsDialog.module.css";
import { knownIssuers } from "./issuers";

type ShareRole = Participant["role"];

const what: Record<ShareRole, string> = { viewer: "can read", editor: "can write" };

export function RoleSelect({
    value,
    label,
    onChange,
}: {
    value: ShareRole;
    label: string;
    onChange(role: ShareRole): void;
}) {
    return (
        <select
            aria-label={label}
            value={value}
            onChange={(event) => onChange(event.target.value as ShareRole)}
        >
            {(Object.keys(what) as ShareRole[]).map((role) => (
                <option key={role} value={role}>
                    {what[role]}
                </option>
            ))}
        </select>
    );
}

interface AddProps {
    onAdd(
        kind: "subject" | "organisation",
        name: string,
        issuer: string,
        role: ShareRole,
    ): Promise<boolean>;
}

function AddForm({ onAdd }: AddProps) {
    const [kind, setKind] = useState<"subject" | "organisation">("subject");
    const [name, setName] = useState("");
    const { own, all } = knownIssuers(useSettings().settings);
    const [issuer, setIssuer] = useState(own);
    const [role, setNewRole] = useState<ShareRole>("viewer");
    return (
        <form
            className={styles.row}
            onSubmit={(event) => {
                event.preventDefault();
                void onAdd(kind, name.trim(), issuer.trim(), role).then(
                    (isDone) => isDone && setName(""),
                );
            }}
        >
            <select
                aria-label="Who"
                value={kind}
                onChange={(event) => setKind(event.target.value as typeof kind)}
            >
                <option value="subject">Person</option>
                <option value="organisation">Organisation</option>
            </select>
            <input
                type="text"
                aria-label={kind === "subject" ? "Subject of the person" : "Organisation name"}
                placeholder={kind === "subject" ? "Subject claim of their tokens" : "Organisation"}
                value={name}
                onChange={(event) => setName(event.target.value)}
            />
            <input
                type="text"
                list="known-issuers"
                aria-label="Issuer alias"
                placeholder="Issuer alias"
                value={issuer}
                onChange={(event) => setIssuer(event.target.value)}
            />
            <datalist id="known-issuers">
                {all.map((one) => (
                    <option key={one} value={one} />
                ))}
            </datalist>
            <RoleSelect label="Permission" value={role} onChange={setNewRole} />
            <Button type="submit" icon="plus" disabled={!name.trim() || !issuer.trim()}>
                Add
            </Button>
        </form>
    );
}

/** The participants of the conversation. */
export function Participants({ threadId, isOwner }: { threadId: string; isOwner: boolean }) {
    const [people, setPeople] = useState<Participant[] | null>(null);
    const [problem, setProblem] = useState<string | null>(null);

    const load = useCallback(
        () =>
            getParticipants(threadId).then(setPeople, (error: unknown) =>
                setProblem(reasonOf(error)),
            ),
        [threadId],
    );
    useEffect(() => void load(), [load]);

    const change = async (work: () => Promise<unknown>): Promise<boolean> => {
        setProblem(null);
        try {
            await work();
            await load();
            return true;
        } catch (error) {
            setProblem(reasonOf(error));
            return false;
        }
    };

    return (
        <Section title="Shared with">
            {people?.length === 0 && <p className={styles.soft}>Not shared.</p>}
            <ul className={styles.people}>
                {people?.map(({ participant_id: id, subject, organisation, issuer, role }) => {
                    const name = subject ?? organisation ?? id;
                    return (
                        <li key={id}>
                            <span className={styles.who}>
                                {name}
                                <small>{organisation ? `organisation · ${issuer}` : issuer}</small>
                            </span>
                            {isOwner ? (
                                <>
                                    <RoleSelect
                                        label={`Permission of ${name}`}
                                        value={role}
                                        onChange={(next) =>
                                            void change(() => setRole(threadId, id, next))
                                        }
                                    />
                                    <IconButton
                                        icon="trash"
                                        label={`Remove ${name}`}
                                        tip="right"
                                        onClick={() =>
                                            void change(() => removeParticipant(threadId, id))
                                        }
                                    />
                                </>
                            ) : (
                                <span>{what[role]}</span>
                            )}
                        </li>
                    );
                })}
            </ul>
            {isOwner && (
                <AddForm
                    onAdd={(kind, name, issuer, role) =>
                        change(() => addParticipant(threadId, { issuer, role, [kind]: name }))
                    }
                />
            )}
            {problem && (
                <p className={styles.error} role="alert">
                    {problem}
                </p>
            )}
        </Section>
    );
}
