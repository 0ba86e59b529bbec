/** Shared handling of checkpoint values by all savers. */
import {
    INTERRUPT,
    maxChannelVersion,
    TASKS,
    type Checkpoint,
    type CheckpointPendingWrite,
} from "@langchain/langgraph-checkpoint";
import { CANONICAL } from "./canonical.js";
import type { Hint } from "./encode.js";

const HINTS: Readonly<Record<string, { hint: Hint }>> = {
    [TASKS]: { hint: "send" },
    [INTERRUPT]: { hint: "interrupt" },
};

/** The meaning of plain objects in a channel, by the channel's name. */
export function hintOf(channel: string): { hint: Hint } | undefined {
    return Object.hasOwn(HINTS, channel) ? HINTS[channel] : undefined;
}

/** Python keeps all interrupts of a task in one write, JavaScript each in its own. */
export function addWrite(
    writes: CheckpointPendingWrite[],
    task: string,
    channel: string,
    type: string,
    value: unknown,
): void {
    const isMany = channel === INTERRUPT && type === CANONICAL && Array.isArray(value);
    for (const each of isMany ? (value as unknown[]) : [value]) writes.push([task, channel, each]);
}

/** Checkpoints of format 3 and before keep their pending Sends in the parent's writes. */
export function migrateSends(
    checkpoint: Checkpoint,
    sends: readonly CheckpointPendingWrite[],
    firstVersion: string,
): void {
    const versions = Object.values(checkpoint.channel_versions);
    checkpoint.channel_values[TASKS] = sends.map(([, , send]) => send);
    checkpoint.channel_versions[TASKS] =
        versions.length > 0 ? maxChannelVersion(...versions) : firstVersion;
}
