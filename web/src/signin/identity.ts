// The identity of the user: stable over renewed tokens, different for another user.
import { session } from "@/api/session";
import { personOf } from "./person";

export function identityOf(token: string | null): string {
    return token ? personOf(token).id : "";
}

/** Called when loaded data belongs to another user. */
export function onOtherPerson(forget: () => void) {
    let id = identityOf(session.get().token);
    session.subscribe(() => {
        const next = identityOf(session.get().token);
        if (next === id) return;
        id = next;
        forget();
    });
}
