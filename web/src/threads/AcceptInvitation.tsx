// Joining a shared conversation: by an opened link, or by a pasted code.
import { useState } from "react";
import { reasonOf, statusOf } from "@/api/client";
import { session } from "@/api/session";
import { useStore } from "@/api/store";
import { goToThread } from "@/app/route";
import { Button } from "@/ui/Button";
import { Dialog } from "@/ui/Dialog";
import { TextField } from "@/ui/Field";
import { accept, invitation, setInvitation } from "./invitation";
import { tokenOf } from "./invitationToken";
import styles from "./AcceptInvitation.module.css";

function refusal(error: unknown): string {
    if (statusOf(error) === 404)
        return "This invitation is no longer valid: it was used, revoked, or has expired.";
    return reasonOf(error);
}

function JoinDialog({ token, onClose }: { token: string | null; onClose(): void }) {
    const [text, setText] = useState("");
    const [problem, setProblem] = useState<string | null>(null);
    const [isBusy, setBusy] = useState(false);

    const join = async () => {
        const given = token ?? tokenOf(text);
        if (!given) return setProblem("Paste the whole invitation link or its code.");
        setBusy(true);
        setProblem(null);
        try {
            const threadId = await accept(given);
            onClose();
            goToThread(threadId);
        } catch (error) {
            setProblem(refusal(error));
        } finally {
            setBusy(false);
        }
    };

    const actions = (
        <>
            <Button onClick={onClose}>{token ? "Not now" : "Cancel"}</Button>
            <Button kind="primary" disabled={isBusy} onClick={() => void join()}>
                Join
            </Button>
        </>
    );
    return (
        <Dialog title="Join a conversation" onClose={onClose} actions={actions}>
            {token ? (
                <>
                    <p>You were invited to a conversation. It will appear in your list.</p>
                    {problem && (
                        <p className={styles.problem} role="alert">
                            {problem}
                        </p>
                    )}
                </>
            ) : (
                <form
                    onSubmit={(event) => {
                        event.preventDefault();
                        void join();
                    }}
                >
                    <TextField
                        label="Invitation link or code"
                        value={text}
                        error={problem}
                        autoComplete="off"
                        spellCheck={false}
                        autoFocus
                        onChange={(event) => setText(event.target.value)}
                    />
                </form>
            )}
        </Dialog>
    );
}

/** Sharing requires sign-in. */
export function AcceptInvitation() {
    const { token: isSignedIn } = useStore(session);
    const opened = useStore(invitation);
    const [isPasting, setPasting] = useState(false);
    if (!isSignedIn && !opened) return null;
    return (
        <>
            {isSignedIn && (
                <Button
                    kind="quiet"
                    icon="link"
                    className={styles.join}
                    onClick={() => setPasting(true)}
                >
                    Join with an invitation
                </Button>
            )}
            {(opened !== null || isPasting) && (
                <JoinDialog
                    token={opened}
                    onClose={() => {
                        setInvitation(null);
                        setPasting(false);
                    }}
                />
            )}
        </>
    );
}
