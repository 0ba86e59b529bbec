// Signing out: nothing of the user stays in the browser.
import { isSignedOutBy, signOut } from "@/api/session";
import { clearKept } from "@/api/storage";
import { go } from "@/app/route";
import { flushRemovals } from "@/threads/removal";

const KEPT = new Set(["heddle:theme"]);

const isOfUser = (key: string) => key.startsWith("heddle:") && !KEPT.has(key);

export async function leave(): Promise<void> {
    await flushRemovals(); // with the token that may
    signOut();
    clearKept("sessionStorage", isOfUser);
    clearKept("localStorage", isOfUser);
    go({ view: "talk", threadId: null, at: null, agent: null }, true);
}

/** Who was to be remembered and signs out in one tab does so in all of them. */
export function leaveWithOthers() {
    window.addEventListener("storage", (event) => {
        if (isSignedOutBy(event)) void leave();
    });
}
