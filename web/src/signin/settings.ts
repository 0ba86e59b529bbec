// What the server tells everybody: its version, and how to sign in. Asked for before anything is
// drawn.
import { statusOf } from "@/api/client";
import { connection } from "@/api/connection";
import { getSettings, type Settings } from "@/api/heddle";
import { createStore, useStore } from "@/api/store";

export interface SettingsRead {
    /** null: not known yet, or a server that has none. */
    settings: Settings | null;
    isLoading: boolean;
    /** The server answered with an error that is not "there is no such thing". */
    error: unknown;
}

const store = createStore<SettingsRead>({ settings: null, isLoading: true, error: null });

export const useSettings = () => useStore(store);

export async function loadSettings(): Promise<void> {
    try {
        store.set({ settings: await getSettings(), isLoading: false, error: null });
    } catch (error) {
        // 404: a server of another kind, or an older one. Whether it wants to know who asks, it
        // will say.
        const isAbsent = statusOf(error) === 404;
        store.set({ settings: null, isLoading: false, error: isAbsent ? null : error });
    }
}

void loadSettings();

connection.subscribe(() => {
    if (connection.get() === "online" && store.get().error !== null) void loadSettings();
});
