// The browser's stores, where it lets the page have them: some throw when they are only looked at.

export type StoreName = "localStorage" | "sessionStorage";

export function readKept(store: StoreName, key: string): string | null {
    try {
        return window[store].getItem(key);
    } catch {
        return null;
    }
}

/** null takes it away. What can't be kept lasts as long as the page. */
export function keep(store: StoreName, key: string, text: string | null) {
    try {
        if (text === null) window[store].removeItem(key);
        else window[store].setItem(key, text);
    } catch {
        // Nothing to be done about it.
    }
}

/** Takes away what `isUnwanted` says, by its key. */
export function clearKept(store: StoreName, isUnwanted: (key: string) => boolean) {
    try {
        for (const key of Object.keys(window[store]))
            if (isUnwanted(key)) window[store].removeItem(key);
    } catch {
        // Nothing was kept.
    }
}
