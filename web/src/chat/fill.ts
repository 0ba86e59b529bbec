// What is to be put into the composer: an example, or a message that was not sent.
import { createStore } from "@/api/store";

export interface Filling {
    text: string;
    images: string[];
    /** It was written before what is in the composer now, which stays below it. */
    isEarlier?: boolean;
}

export const fill = createStore<Filling | null>(null);
