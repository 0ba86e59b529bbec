// The clipboard, also on pages without https, for which browsers have only the old way.

function copyOldWay(text: string): boolean {
    const back = document.activeElement;
    const area = document.createElement("textarea");
    area.value = text;
    area.readOnly = true;
    area.className = "visually-hidden";
    // In a dialog nothing outside of it can be selected.
    (back?.closest("dialog") ?? document.body).append(area);
    area.select();
    const isDone = document.execCommand("copy");
    area.remove();
    if (back instanceof HTMLElement) back.focus({ preventScroll: true });
    return isDone;
}

/** Throws when the browser does not let the page have it. */
export async function copyText(text: string): Promise<void> {
    // Typed as always there; without https it is not.
    const clipboard = navigator.clipboard as Clipboard | undefined;
    if (clipboard) return clipboard.writeText(text);
    if (!copyOldWay(text)) throw new Error("refused");
}
