// A counter of created, renamed, removed and changed threads, here or in another tab: the list
// reloads.
import { createStore } from "@/api/store";

export const threadChanges = createStore(0);

const others = "BroadcastChannel" in window ? new BroadcastChannel("heddle:threads") : null;

const count = () => threadChanges.update((before) => before + 1);

if (others) others.onmessage = count;

export function noteThreadChange() {
    count();
    others?.postMessage(null);
}
