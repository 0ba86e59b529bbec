// Signing in: at an issuer, or by pasting a token or an API key.
import { useEffect, useRef, useState } from "react";
import { apiRequest, reasonOf, statusOf } from "@/api/client";
import { signIn } from "@/api/session";
import { Button } from "@/ui/Button";
import { TextField } from "@/ui/Field";
import { signOut } from "./signOut";
import { begin } from "./oidc";
import { expiryOf } from "./person";
import type { SignInMethod } from "@/api/heddle";
import { loadSettings } from "./settings";
import styles from "./SignInGate.module.css";

interface PageProps {
    methods: SignInMethod[];
    problem: string | null;
}

/** Checks the token with the server before it is stored. */
async function tryToken(token: string, remember: boolean): Promise<void> {
    try {
        await apiRequest("/threads/count", { method: "POST", body: {}, as: token });
    } catch (error) {
        if (statusOf(error) === 401)
            throw new Error("The server does not accept this token or key.");
        throw error;
    }
    signIn({ token, expires: expiryOf(token), refreshToken: null, way: null }, remember);
}

/** A header value has no spaces, line ends or non-ASCII letters. */
function cleanToken(text: string): string | null {
    const token = text.trim().replace(/^Bearer\s+/i, "");
    return /^[\x21-\x7e]+$/.test(token) ? token : null;
}

function PasteForm({ remember, isFirst }: { remember: boolean; isFirst: boolean }) {
    const [text, setText] = useState("");
    const [problem, setProblem] = useState<string | null>(null);
    const [isBusy, setBusy] = useState(false);
    const submit = async () => {
        const token = cleanToken(text);
        if (!token) return setProblem("Paste a token or an API key, without spaces.");
        setBusy(true);
        setProblem(null);
        try {
            await tryToken(token, remember);
        } catch (error) {
            setProblem(reasonOf(error));
            setBusy(false);
        }
    };
    return (
        <form
            onSubmit={(event) => {
                event.preventDefault();
                void submit();
            }}
        >
            <TextField
                label="Token or API key"
                type="password"
                autoComplete="off"
                spellCheck={false}
                value={text}
                error={problem}
                autoFocus={isFirst}
                onChange={(event) => setText(event.target.value)}
            />
            <Button
                kind={isFirst ? "primary" : "plain"}
                type="submit"
                className={styles.wide}
                disabled={isBusy}
            >
                {isBusy ? "Signing in…" : "Sign in"}
            </Button>
        </form>
    );
}

function SignInMethods({ methods, remember }: { methods: SignInMethod[]; remember: boolean }) {
    const [problem, setProblem] = useState<string | null>(null);
    const isSecure = window.isSecureContext;
    const go = (method: SignInMethod) =>
        begin(method, remember).catch((error: unknown) => {
            setProblem(reasonOf(error));
            void loadSettings(); // the server may reach the issuer by now
        });
    return (
        <>
            {methods.map((method) => (
                <Button
                    key={method.name}
                    kind="primary"
                    className={styles.wide}
                    disabled={!isSecure}
                    onClick={() => void go(method)}
                >
                    Continue with {method.name}
                </Button>
            ))}
            {!isSecure && <p className={styles.hint}>Signing in there requires HTTPS.</p>}
            {problem && (
                <p className={styles.problem} role="alert">
                    {problem}
                </p>
            )}
            <p className={styles.or}>or</p>
        </>
    );
}

function Card({ methods, problem, title, text }: PageProps & { title: string; text: string }) {
    const [remember, setRemember] = useState(false);
    return (
        <div className={styles.card}>
            <img src="./icon.svg" alt="" width="40" height="40" />
            <h1 id="sign-in">{title}</h1>
            <p>{text}</p>
            {problem && (
                <p className={styles.problem} role="alert">
                    Sign-in failed. {problem}
                </p>
            )}
            <div className={styles.methods}>
                {methods.length > 0 && <SignInMethods methods={methods} remember={remember} />}
                <PasteForm remember={remember} isFirst={methods.length === 0} />
                <label className={styles.remember}>
                    <input
                        type="checkbox"
                        checked={remember}
                        onChange={(event) => setRemember(event.target.checked)}
                    />
                    <span>
                        Keep me signed in on this device
                        <small>Otherwise you are signed out when this tab closes.</small>
                    </span>
                </label>
            </div>
        </div>
    );
}

export function SignInPage(props: PageProps) {
    return (
        <main className={styles.page}>
            <Card {...props} title="Sign in to Heddle" text="Sign in to see your conversations." />
        </main>
    );
}

/** Over the page, which keeps its state behind it. */
export function SignInAgain(props: PageProps) {
    const dialog = useRef<HTMLDialogElement>(null);
    useEffect(() => {
        const { current } = dialog;
        if (current && !current.open) current.showModal();
        return () => current?.close();
    }, []);
    return (
        <dialog
            ref={dialog}
            className={styles.again}
            aria-labelledby="sign-in"
            onCancel={(event) => event.preventDefault()}
        >
            <Card
                {...props}
                title="Sign in again"
                text="Your session has expired. Your draft is still here."
            />
            <Button kind="quiet" className={styles.signOut} onClick={() => void signOut()}>
                Sign out instead
            </Button>
        </dialog>
    );
}
