// Counts up when a thread was made, renamed, removed or spoken in, here or in another tab: the list
// looks again.
import { createStore } from "@/api/store";

export const threadChanges = createStore(0);

const others = "BroadcastChannel" in window ? new BroadcastChannel("heddle:threads") : null;

const count = () => threadChanges.update((before) => before + 1);

if (others) others.onmessage = count;

export function noteThreadChange() {
    count();
    others?.postMessage(null);
}
