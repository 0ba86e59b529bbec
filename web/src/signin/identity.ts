// Who the page is for: the same over renewed tokens, another when somebody else signs in.
import { session } from "@/api/session";
import { personOf } from "./person";

export function identityOf(token: string | null): string {
    return token ? personOf(token).id : "";
}

/** Called when what was loaded is not for the present user's eyes. */
export function onOtherPerson(forget: () => void) {
    let id = identityOf(session.get().token);
    session.subscribe(() => {
        const next = identityOf(session.get().token);
        if (next === id) return;
        id = next;
        forget();
    });
}
