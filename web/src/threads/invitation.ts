// An invitation opened by its link, `#/?invitation=…`. It is a secret: the page removes it from the
// URL at once and keeps it in this tab until it is accepted or dismissed.
import { apiRequest } from "@/api/client";
import { keep, readStored } from "@/api/storage";
import { createStore } from "@/api/store";
import { noteThreadChange } from "./changes";
import { tokenOf } from "./invitationToken";

const KEY = "heddle:invitation";

export const invitation = createStore<string | null>(readStored("sessionStorage", KEY));

export function setInvitation(token: string | null) {
    keep("sessionStorage", KEY, token || null);
    invitation.set(token);
}

/** The format of the page's invitation links. */
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

/** The thread of the invitation. */
export async function accept(token: string): Promise<string> {
    const { thread_id } = await apiRequest<{ thread_id: string }>("/invitations/accept", {
        method: "POST",
        body: { token },
    });
    setInvitation(null);
    noteThreadChange();
    return thread_id;
}
