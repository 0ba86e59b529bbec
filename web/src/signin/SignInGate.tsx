// Shows the page to signed-in users, or to all where the server requires no sign-in.
import { useEffect, useState, type ReactNode } from "react";
import { reasonOf } from "@/api/client";
import { isRefused, session, signIn } from "@/api/session";
import { useStore } from "@/api/store";
import { Button } from "@/ui/Button";
import { identityOf } from "./identity";
import { signOutWithOtherTabs } from "./signOut";
import { exchange, returned } from "./oidc";
import type { Way } from "./pkce";
import { keepRenewed } from "./renew";
import { loadSettings, useSettings } from "./settings";
import styles from "./SignInGate.module.css";
import { SignInAgain, SignInPage } from "./SignInPage";

keepRenewed();
signOutWithOtherTabs();

const noWays: Way[] = [];
let isTaken = false;

/** The redirect back from an issuer: exchanges the code for a token. */
function useReturn(ways: Way[], isReady: boolean) {
    const [isComing, setComing] = useState(returned !== null && !isTaken);
    const [problem, setProblem] = useState<string | null>(null);
    useEffect(() => {
        if (!returned || isTaken || !isReady) return;
        isTaken = true; // a code works once
        exchange(returned, ways)
            .then(
                (next) => signIn(next, returned?.begun?.remember ?? false),
                (error: unknown) => setProblem(reasonOf(error)),
            )
            .finally(() => setComing(false));
    }, [ways, isReady]);
    return { isComing, problem };
}

/** Shows nothing for a second, then a progress text. */
function Waiting({ text }: { text: string }) {
    return (
        <div className={styles.waiting} role="status">
            <span className={styles.spinner} aria-hidden="true" />
            {text}
        </div>
    );
}

function Unreachable({ error }: { error: unknown }) {
    return (
        <main className={styles.page}>
            <div className={styles.card} role="alert">
                <h1>The server is not responding</h1>
                <p>{reasonOf(error)}</p>
                <Button icon="retry" onClick={() => void loadSettings()}>
                    Try again
                </Button>
            </div>
        </main>
    );
}

export function SignInGate({ children }: { children: ReactNode }) {
    const { settings, isLoading, error } = useSettings();
    const { token } = useStore(session);
    const wasRefused = useStore(isRefused);
    const ways = settings?.sign_in ?? noWays;
    const { isComing, problem } = useReturn(ways, !isLoading);

    if (isLoading) return <Waiting text="Connecting…" />;
    if (isComing) return <Waiting text="Signing in…" />;
    if (error !== null && token === null) return <Unreachable error={error} />;
    if (token === null && (wasRefused || settings?.needs_sign_in || problem))
        return <SignInPage ways={ways} problem={problem} />;
    // An expired token: the page keeps its state and drafts until the user signs in again.
    const isAway = token !== null && wasRefused;
    return (
        <>
            <div key={identityOf(token)} className={styles.inside} inert={isAway}>
                {children}
            </div>
            {isAway && <SignInAgain ways={ways} problem={problem} />}
        </>
    );
}
