// The server's public settings: its version and sign-in methods. Loaded before the first render.
import { statusOf } from "@/api/client";
import { connection } from "@/api/connection";
import { getSettings, type Settings } from "@/api/heddle";
import { createStore, useStore } from "@/api/store";

export interface SettingsRead {
    /** null: not loaded yet, or a server without settings. */
    settings: Settings | null;
    isLoading: boolean;
    /** The server responded with an error other than 404. */
    error: unknown;
}

const store = createStore<SettingsRead>({ settings: null, isLoading: true, error: null });

export const useSettings = () => useStore(store);

export async function loadSettings(): Promise<void> {
    try {
        store.set({ settings: await getSettings(), isLoading: false, error: null });
    } catch (error) {
        // 404: another kind of server, or an older one. It rejects requests itself if it requires
        // sign-in.
        const isAbsent = statusOf(error) === 404;
        store.set({ settings: null, isLoading: false, error: isAbsent ? null : error });
    }
}

void loadSettings();

connection.subscribe(() => {
    if (connection.get() === "online" && store.get().error !== null) void loadSettings();
});
