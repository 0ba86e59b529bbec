// Records of a room for the unit tests.
import type { Cascade, ChatMessage, Sender, Step } from "./types";

export const ann: Sender = { type: "person", id: "ann", name: "Ann" };
export const bob: Sender = { type: "person", id: "bob", name: "Bob" };
export const guide: Sender = { type: "agent", id: "a1", name: "Guide" };

export function chatMessage(seq: number, more: Partial<ChatMessage> = {}): ChatMessage {
    const time = `2026-01-01T00:00:${String(seq).padStart(2, "0")}.000+00:00`;
    return {
        id: `m${seq}`,
        seq,
        thread_id: "t",
        sender: ann,
        content: `text ${seq}`,
        metadata: null,
        reply_to: null,
        mentions: [],
        version: 1,
        state: "ok",
        replaced_by: null,
        replaces: null,
        run_id: null,
        checkpoint_id: null,
        interrupts: null,
        error: null,
        feedback: null,
        created_at: time,
        updated_at: time,
        runs: [],
        ...more,
    };
}

export function planStep(run: string, more: Partial<Step> = {}): Step {
    return {
        run_id: run,
        assistant_id: "a1",
        trigger: "m1",
        answer: null,
        why: "trigger",
        cause: null,
        approval: null,
        blocked: null,
        tools: [],
        after: [],
        status: "waiting",
        new_run_id: null,
        new_answer: null,
        ...more,
    };
}

export function cascadeOf(plan: Step[], more: Partial<Cascade> = {}): Cascade {
    return {
        cascade_id: "c",
        thread_id: "t",
        message_id: "m1",
        version: 2,
        status: "running",
        limit: 5,
        approved: 0,
        reason: null,
        plan,
        created_at: "2026-01-01T00:01:00.000+00:00",
        updated_at: "2026-01-01T00:01:00.000+00:00",
        ...more,
    };
}
