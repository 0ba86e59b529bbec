// Light or dark, by the system setting or by choice.
import { keep, readStored } from "@/api/storage";
import { createStore, useStore } from "@/api/store";

export type Theme = "system" | "light" | "dark";

const KEY = "heddle:theme";
const dark = window.matchMedia("(prefers-color-scheme: dark)");

function read(): Theme {
    const kept = readStored("localStorage", KEY);
    return kept === "light" || kept === "dark" ? kept : "system";
}

const theme = createStore<Theme>(read());

function apply() {
    const chosen = theme.get();
    document.documentElement.dataset.theme =
        chosen === "system" ? (dark.matches ? "dark" : "light") : chosen;
}

dark.addEventListener("change", apply);
theme.subscribe(apply);
apply();

export const useTheme = () => useStore(theme);

export function chooseTheme(next: Theme) {
    theme.set(next);
    keep("localStorage", KEY, next === "system" ? null : next);
}
