// The text of a reply to a question, for readers of the chat. Pure.
import type { Answer, Item } from "@/interrupts/question";

function wordsOf(item: Item, answer: Answer): string {
    if (answer.type === "respond") return answer.text;
    const subject = item.kind === "call" ? ` ${item.name}` : "";
    if (answer.type === "accept") return `Accepted${subject}`;
    if (answer.type === "edit") return `Accepted${subject} with changes`;
    if (answer.type === "value") return JSON.stringify(answer.value);
    return item.kind === "call" && item.form === "decision"
        ? `Rejected${subject}`
        : `Ignored${subject}`;
}

export function replyText(
    items: readonly { item: Item }[],
    given: ReadonlyMap<number, Answer>,
): string {
    return items
        .flatMap(({ item }, at) => {
            const answer = given.get(at);
            return answer ? wordsOf(item, answer) : [];
        })
        .join("\n");
}
