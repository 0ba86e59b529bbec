// The session. A token stays in this tab (sessionStorage), and in localStorage only if the user
// chose to stay signed in.
import { keep, readStored, type StoreName } from "./storage";
import { createStore } from "./store";

export interface Session {
    token: string | null;
    /** When the token expires, in milliseconds; null: unknown. */
    expires: number | null;
    refreshToken: string | null;
    /** The sign-in method (`/page/settings`) that issued the token; null: it was pasted. */
    way: string | null;
}

const KEY = "heddle:session";
const signedOut: Session = { token: null, expires: null, refreshToken: null, way: null };

function parse(text: string | null): Session | null {
    try {
        return text ? { ...signedOut, ...(JSON.parse(text) as Partial<Session>) } : null;
    } catch {
        return null; // not written by this page
    }
}

const read = (store: StoreName) => parse(readStored(store, KEY));

const write = (store: StoreName, session: Session | null) =>
    keep(store, KEY, session && JSON.stringify(session));

export const session = createStore<Session>(
    read("sessionStorage") ?? read("localStorage") ?? signedOut,
);

/** True after the server rejected the token, or requires one and there is none. */
export const isRefused = createStore(false);

/** Replaces an expired token; set by the sign-in. False: impossible. */
export const renewal = { renew: (_refused: string): Promise<boolean> => Promise.resolve(false) };

/** Resolves when the server accepts the session again; at once if it was not rejected. */
export function untilSignedIn(signal: AbortSignal): Promise<void> {
    return new Promise((resolve) => {
        const look = () => {
            if (isRefused.get() && !signal.aborted) return;
            stop();
            resolve();
        };
        const stop = isRefused.subscribe(look);
        signal.addEventListener("abort", look, { once: true });
        look();
    });
}

export function signIn(next: Session, remember: boolean) {
    write("sessionStorage", next);
    write("localStorage", remember ? next : null);
    session.set(next);
    isRefused.set(false);
}

export function endSession() {
    write("sessionStorage", null);
    write("localStorage", null);
    session.set(signedOut);
    isRefused.set(true);
}

/** The session in localStorage; null: none. */
export const remembered = () => read("localStorage");

/** Reports whether a storage event from another tab removes the session that this tab uses. */
export function isSignedOutBy({ key, oldValue, newValue }: StorageEvent): boolean {
    const { token } = session.get();
    return key === KEY && newValue === null && token !== null && parse(oldValue)?.token === token;
}
