// Signing out removes all of the user's data from the browser.
import { endSession, isSignedOutBy } from "@/api/session";
import { clearStored } from "@/api/storage";
import { go } from "@/app/route";
import { flushRemovals } from "@/threads/removal";

const KEPT = new Set(["heddle:theme"]);

const isOfUser = (key: string) => key.startsWith("heddle:") && !KEPT.has(key);

export async function signOut(): Promise<void> {
    await flushRemovals(); // the token is still valid here
    endSession();
    clearStored("sessionStorage", isOfUser);
    clearStored("localStorage", isOfUser);
    go({ view: "chat", threadId: null, at: null, agent: null }, true);
}

/** A remembered user who signs out in one tab is signed out in all tabs. */
export function signOutWithOtherTabs() {
    window.addEventListener("storage", (event) => {
        if (isSignedOutBy(event)) void signOut();
    });
}
