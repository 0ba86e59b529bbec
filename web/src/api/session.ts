// Who is signed in. A token lives in this tab (sessionStorage), and in the browser only when asked.
import { keep, readKept, type StoreName } from "./storage";
import { createStore } from "./store";

export interface Session {
    token: string | null;
    /** When the token ends, in milliseconds; null: not known. */
    expires: number | null;
    refreshToken: string | null;
    /** The name of the way in (`/page/settings`) that gave the token; null: it was pasted. */
    way: string | null;
}

const KEY = "heddle:session";
const signedOut: Session = { token: null, expires: null, refreshToken: null, way: null };

function parse(text: string | null): Session | null {
    try {
        return text ? { ...signedOut, ...(JSON.parse(text) as Partial<Session>) } : null;
    } catch {
        return null; // not ours
    }
}

const read = (store: StoreName) => parse(readKept(store, KEY));

const write = (store: StoreName, session: Session | null) =>
    keep(store, KEY, session && JSON.stringify(session));

export const session = createStore<Session>(
    read("sessionStorage") ?? read("localStorage") ?? signedOut,
);

/** True after the server refused the token that we have, or none was given where one is needed. */
export const isRefused = createStore(false);

/** How a token that has run out is replaced; set by the sign-in. False: it can't be. */
export const renewal = { renew: (_refused: string): Promise<boolean> => Promise.resolve(false) };

/** Resolves when the server takes our word again; at once when it has not refused it. */
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

/** What is kept beyond the tab; null: nothing. */
export const remembered = () => read("localStorage");

/**
 * Whether a change of the browser's store, as other tabs are told of it, takes away what this tab
 * is signed in with.
 */
export function isSignedOutBy({ key, oldValue, newValue }: StorageEvent): boolean {
    const { token } = session.get();
    return key === KEY && newValue === null && token !== null && parse(oldValue)?.token === token;
}
