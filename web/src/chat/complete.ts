// Completes unfinished Markdown so that it looks as it will when it is complete. Pure.

/** The unfinished end of the text, from its last empty line. */
function tailAt(text: string): number {
    const at = text.lastIndexOf("\n\n");
    return at < 0 ? 0 : at + 2;
}

function isInFence(text: string): boolean {
    let fence: string | null = null;
    for (const line of text.split("\n")) {
        const mark = /^ {0,3}(`{3,}|~{3,})/.exec(line)?.[1];
        if (!mark) continue;
        if (fence === null) fence = mark;
        else if (mark[0] === fence[0] && mark.length >= fence.length) fence = null;
    }
    return fence !== null;
}

/** The head of a table without the line below it would be a paragraph, and then jump. */
function completeTable(tail: string): string {
    const [head = "", rule = "", ...rows] = tail.split("\n");
    if (!/^\s*\|.*\|\s*$/.test(head) || rows.length > 0 || !/^[\s|:-]*$/.test(rule)) return tail;
    const cells = head.trim().slice(1, -1).split("|").length;
    return `${head}\n|${" --- |".repeat(cells)}`;
}

function countOf(text: string, part: string): number {
    return text.split(part).length - 1;
}

function completeInline(tail: string): string {
    let text = tail.replace(
        /!?\[([^\]]*)(\]\([^)\s]*)?$/,
        (whole, label: string, address?: string) => {
            return address === undefined && whole.startsWith("!")
                ? ""
                : address === undefined
                  ? whole
                  : label;
        },
    );
    if (countOf(text, "`") % 2 === 1) return `${text}\``;
    const bare = text.replace(/`[^`]*`/g, "");
    if (countOf(bare, "**") % 2 === 1)
        text = /\*\*\s*$/.test(text) ? text.replace(/\*\*\s*$/, "") : `${text.trimEnd()}**`;
    return text;
}

export function complete(text: string): string {
    if (isInFence(text)) return text;
    const at = tailAt(text);
    const tail = text.slice(at);
    if (/^\s*\|/.test(tail)) return text.slice(0, at) + completeTable(tail);
    return text.slice(0, at) + completeInline(tail);
}
