// The words of a plan. Pure.
import type { Plan, Step } from "./types";

export interface StepState {
    text: string;
    kind: "goes" | "waits" | "failed" | "done";
}

const running: Record<Step["status"], StepState> = {
    waiting: { text: "Waiting", kind: "goes" },
    running: { text: "Writing…", kind: "goes" },
    done: { text: "Done", kind: "done" },
    question: { text: "Asks a question", kind: "waits" },
    failed: { text: "Failed", kind: "failed" },
    skipped: { text: "Skipped", kind: "failed" },
};

export function stateOf(step: Step, isRunning: boolean): StepState {
    if (step.blocked !== null) return { text: "Cannot be repeated", kind: "failed" };
    const isOpen = step.status === "waiting" && step.approval !== null;
    if (isOpen || (!isRunning && step.approval !== null))
        return { text: "Needs approval", kind: "waits" };
    if (isRunning && step.equal) return { text: "Done, the same answer", kind: "done" };
    return isRunning ? running[step.status] : { text: "Is answered again", kind: "goes" };
}

const whys: Record<Step["why"], string> = {
    retry: "Its answer is made again.",
    trigger: "It answers this message.",
    given: "It has read a message that changes.",
    line: "It continues from an answer that changes.",
};

export function whyOf({ why, blocked, tools, approval }: Step): string {
    const used =
        tools.length > 0 ? ` It used ${tools.join(", ")}, which would be called again.` : "";
    if (blocked !== null) return blocked;
    return `${whys[why]}${approval === "effects" || tools.length > 0 ? used : ""}`;
}

/** One sentence about a plan before it acts. */
export function summaryOf({ plan, possible }: Plan): string {
    const waits = plan.filter((step) => step.approval !== null && step.blocked === null).length;
    const answers = (count: number) => (count === 1 ? "1 answer" : `${count} answers`);
    if (plan.length === 0) return "No answer depends on this message.";
    const lost = plan.length - possible;
    const parts = [
        possible > 0
            ? `${answers(possible)} ${possible === 1 ? "is" : "are"} made again.`
            : "No answer can be made again.",
        waits > 0 ? `${waits} of them ${waits === 1 ? "waits" : "wait"} for an approval.` : "",
        lost > 0 ? `${answers(lost)} cannot be repeated and ${lost === 1 ? "becomes" : "become"} out of date.` : "", // prettier-ignore
    ];
    return parts.filter(Boolean).join(" ");
}
