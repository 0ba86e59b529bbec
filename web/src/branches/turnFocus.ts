// State that survives when one version of a message replaces another: the focused control, the
// screen reader announcement, and the number of the earlier version.
import { createStore } from "@/api/store";

export type Control = "edit" | "retry" | "previous" | "next";

/**
 * A turn, independent of the shown version: the agent and the checkpoint that all versions start
 * from.
 */
export interface TurnKey {
    assistantId: string;
    fork: string;
}

export const isSameTurn = (a: TurnKey | null, b: TurnKey | null) =>
    a !== null && b !== null && a.assistantId === b.assistantId && a.fork === b.fork;

/** The used control, which disappears with its message `from`. */
export const pendingFocus = createStore<(TurnKey & { control: Control; from: string }) | null>(
    null,
);

/** The version number that the last edit or retry replaced. */
export const replacedVersion = createStore<(TurnKey & { number: number }) | null>(null);

/** The last announcement. */
export const announced = createStore("");
