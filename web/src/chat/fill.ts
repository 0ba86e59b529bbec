// Content to put into the composer: an example, or a message that was not sent.
import { createStore } from "@/api/store";

export interface Filling {
    text: string;
    images: string[];
    /** It goes before the current content of the composer. */
    isEarlier?: boolean;
}

export const fill = createStore<Filling | null>(null);
