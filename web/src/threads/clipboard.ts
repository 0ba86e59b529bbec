// The clipboard, with the legacy fallback for pages without https.

function copyWithCommand(text: string): boolean {
    const back = document.activeElement;
    const area = document.createElement("textarea");
    area.value = text;
    area.readOnly = true;
    area.className = "visually-hidden";
    // Inside a modal dialog nothing outside of it can be selected.
    (back?.closest("dialog") ?? document.body).append(area);
    area.select();
    const isDone = document.execCommand("copy");
    area.remove();
    if (back instanceof HTMLElement) back.focus({ preventScroll: true });
    return isDone;
}

/** Throws when the browser denies access. */
export async function copyText(text: string): Promise<void> {
    // The types declare it as always defined; it is undefined without https.
    const clipboard = navigator.clipboard as Clipboard | undefined;
    if (clipboard) return clipboard.writeText(text);
    if (!copyWithCommand(text)) throw new Error("refused");
}
