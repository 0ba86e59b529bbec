import { useCallback, useEffect, useState } from "react";
import { reasonOf } from "@/api/client";
import { Button, IconButton } from "@/ui/Button";
import { CopyButton } from "./CopyButton";
import { until } from "./dates";
import { getInvitations, invite, takeBack, type Invitation } from "./details";
import { Section } from "./DetailsDialog";
import styles from "./DetailsDialog.module.css";
import { linkOf } from "./invitation";
import { RoleSelect } from "./Participants";

function describe({ role, uses, uses_left }: Invitation): string {
    const may = role === "viewer" ? "Can read" : "Can write";
    return uses === 1 ? `${may}, one person` : `${may}, ${uses_left} of ${uses} left`;
}

/** Invitation links. A link is shown once: the server stores only its hash. */
export function Invitations({ threadId }: { threadId: string }) {
    const [list, setList] = useState<Invitation[]>([]);
    const [role, setRole] = useState<Invitation["role"]>("viewer");
    const [uses, setUses] = useState("1");
    const [made, setMade] = useState<{ id: string; link: string } | null>(null);
    const [problem, setProblem] = useState<string | null>(null);

    const load = useCallback(
        () =>
            getInvitations(threadId).then(setList, (error: unknown) => setProblem(reasonOf(error))),
        [threadId],
    );
    useEffect(() => void load(), [load]);

    const run = async (work: () => Promise<void>) => {
        setProblem(null);
        try {
            await work();
            await load();
        } catch (error) {
            setProblem(reasonOf(error));
        }
    };
    const make = () =>
        run(async () => {
            const { invitation_id, token } = await invite(
                threadId,
                role,
                Math.max(1, Math.floor(Number(uses)) || 1),
            );
            setMade({ id: invitation_id, link: linkOf(token) });
        });
    const revoke = (id: string) =>
        run(async () => {
            await takeBack(threadId, id);
            setMade((before) => (before?.id === id ? null : before));
        });

    return (
        <Section title="Invitations">
            <ul className={styles.people}>
                {list.map((one) => (
                    <li key={one.invitation_id}>
                        <span className={styles.who}>
                            {describe(one)}
                            <small>Expires {until(one.expires_at, new Date())}</small>
                        </span>
                        <IconButton
                            icon="trash"
                            label="Revoke the invitation"
                            tip="right"
                            onClick={() => void revoke(one.invitation_id)}
                        />
                    </li>
                ))}
            </ul>
            <div className={styles.row}>
                <RoleSelect label="Permission of invited people" value={role} onChange={setRole} />
                <label className={styles.row}>
                    for
                    <input
                        type="number"
                        min="1"
                        max="1000"
                        step="1"
                        value={uses}
                        onChange={(event) => setUses(event.target.value)}
                    />
                    people
                </label>
                <Button icon="link" onClick={() => void make()}>
                    Create a link
                </Button>
            </div>
            {made && (
                <div className={styles.link}>
                    <input
                        readOnly
                        aria-label="Invitation link"
                        value={made.link}
                        onFocus={(event) => event.target.select()}
                    />
                    <CopyButton text={made.link} label="Copy the link" />
                </div>
            )}
            {made && <p className={styles.soft}>Copy it now: it is not shown again.</p>}
            {problem && (
                <p className={styles.error} role="alert">
                    {problem}
                </p>
            )}
        </Section>
    );
}
