// What has to outlive a message that another one takes the place of: where the keyboard's focus
// was, what a screen reader is told, and that the earlier version is kept.
import { createStore } from "@/api/store";

export type Control = "edit" | "retry" | "previous" | "next";

/**
 * A turn, whichever of its versions is shown: an agent's line and the checkpoint that they all
 * begin at.
 */
export interface TurnKey {
    assistantId: string;
    fork: string;
}

export const isSameTurn = (a: TurnKey | null, b: TurnKey | null) =>
    a !== null && b !== null && a.assistantId === b.assistantId && a.fork === b.fork;

/** The control that was used and goes away with its message, `from`. */
export const pendingFocus = createStore<(TurnKey & { control: Control; from: string }) | null>(
    null,
);

/** The number of the version that was left by the last edit or retry. */
export const replacedVersion = createStore<(TurnKey & { number: number }) | null>(null);

/** What was announced last. */
export const announced = createStore("");
