// Who the user is in rooms and shared conversations: the server knows.
import type { Sender } from "@/api/heddle";
import { createStore } from "@/api/store";
import { onOtherPerson } from "@/signin/identity";

/** null: not known yet. */
const me = createStore<Sender | null>(null);

onOtherPerson(() => me.set(null));

export const noteMe = me.set;

/** Messages without a known sender are the user's, as in conversations of one person. */
export function otherSender(sender: Sender | null | undefined): Sender | null {
    const own = me.get();
    if (!sender || !own) return null;
    return sender.type === own.type && sender.id === own.id ? null : sender;
}
