// An invitation to a conversation that somebody opened by its link, `#/?invitation=…`. It is a
// secret: it leaves the address at once, and waits in this tab until it is accepted or put aside.
import { ask } from "@/api/client";
import { keep, readKept } from "@/api/storage";
import { createStore } from "@/api/store";
import { noteThreadChange } from "./changes";
import { tokenOf } from "./invitationToken";

const KEY = "heddle:invitation";

export const invitation = createStore<string | null>(readKept("sessionStorage", KEY));

export function setInvitation(token: string | null) {
    keep("sessionStorage", KEY, token || null);
    invitation.set(token);
}

/** What the page's own links look like. */
export function linkOf(token: string): string {
    const { origin, pathname } = window.location;
    return `${origin}${pathname}#/?invitation=${encodeURIComponent(token)}`;
}

function take() {
    if (!/[?&]invitation=/.test(window.location.hash)) return;
    const token = tokenOf(window.location.hash);
    window.history.replaceState(null, "", "#/");
    if (token) setInvitation(token);
}

take();
window.addEventListener("hashchange", take);

/** Which thread it opens. */
export async function accept(token: string): Promise<string> {
    const { thread_id } = await ask<{ thread_id: string }>("/invitations/accept", {
        method: "POST",
        body: { token },
    });
    setInvitation(null);
    noteThreadChange();
    return thread_id;
}
