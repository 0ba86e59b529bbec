// The browser's storage, where it is available: some browsers throw on access.

export type StoreName = "localStorage" | "sessionStorage";

export function readStored(store: StoreName, key: string): string | null {
    try {
        return window[store].getItem(key);
    } catch {
        return null;
    }
}

/** null removes the entry. Without storage a value lasts as long as the page. */
export function keep(store: StoreName, key: string, text: string | null) {
    try {
        if (text === null) window[store].removeItem(key);
        else window[store].setItem(key, text);
    } catch {
        // Storage is unavailable or full.
    }
}

/** Removes the entries whose key `isUnwanted` accepts. */
export function clearStored(store: StoreName, isUnwanted: (key: string) => boolean) {
    try {
        for (const key of Object.keys(window[store]))
            if (isUnwanted(key)) window[store].removeItem(key);
    } catch {
        // Storage is unavailable.
    }
}
