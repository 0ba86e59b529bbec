// Signing out: nothing of the user stays in the browser.
import { endSession, isSignedOutBy } from "@/api/session";
import { clearKept } from "@/api/storage";
import { go } from "@/app/route";
import { flushRemovals } from "@/threads/removal";

const KEPT = new Set(["heddle:theme"]);

const isOfUser = (key: string) => key.startsWith("heddle:") && !KEPT.has(key);

export async function signOut(): Promise<void> {
    await flushRemovals(); // with the token that may
    endSession();
    clearKept("sessionStorage", isOfUser);
    clearKept("localStorage", isOfUser);
    go({ view: "chat", threadId: null, at: null, agent: null }, true);
}

/** Who was to be remembered and signs out in one tab does so in all of them. */
export function signOutWithOtherTabs() {
    window.addEventListener("storage", (event) => {
        if (isSignedOutBy(event)) void signOut();
    });
}
