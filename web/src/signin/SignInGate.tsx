// Shows the page to signed-in users, or to all where the server requires no sign-in.
import { useEffect, useState, type ReactNode } from "react";
import { reasonOf } from "@/api/client";
import { isRefused, session, signIn } from "@/api/session";
import { useStore } from "@/api/store";
import { Button } from "@/ui/Button";
import { identityOf } from "./identity";
import { signOutWithOtherTabs } from "./signOut";
import { exchange, returned } from "./oidc";
import type { SignInMethod } from "@/api/heddle";
import { keepRenewed } from "./renew";
import { loadSettings, useSettings } from "./settings";
import styles from "./SignInGate.module.css";
import { SignInAgain, SignInPage } from "./SignInPage";

keepRenewed();
signOutWithOtherTabs();

const noMethods: SignInMethod[] = [];
let isTaken = false;

/** The redirect back from an issuer: exchanges the code for a token. */
function useReturn(methods: SignInMethod[], isReady: boolean) {
    const [isComing, setComing] = useState(returned !== null && !isTaken);
    const [problem, setProblem] = useState<string | null>(null);
    useEffect(() => {
        if (!returned || isTaken || !isReady) return;
        isTaken = true; // a code works once
        exchange(returned, methods)
            .then(
                (next) => signIn(next, returned?.begun?.remember ?? false),
                (error: unknown) => setProblem(reasonOf(error)),
            )
            .finally(() => setComing(false));
    }, [methods, isReady]);
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
    const methods = settings?.sign_in ?? noMethods;
    const { isComing, problem } = useReturn(methods, !isLoading);

    if (isLoading) return <Waiting text="Connecting…" />;
    if (isComing) return <Waiting text="Signing in…" />;
    if (error !== null && token === null) return <Unreachable error={error} />;
    if (token === null && (wasRefused || settings?.needs_sign_in || problem))
        return <SignInPage methods={methods} problem={problem} />;
    // An expired token: the page keeps its state and drafts until the user signs in again.
    const mustSignIn = token !== null && wasRefused;
    return (
        <>
            <div key={identityOf(token)} className={styles.inside} inert={mustSignIn}>
                {children}
            </div>
            {mustSignIn && <SignInAgain methods={methods} problem={problem} />}
        </>
    );
}
