// Renews issuers' tokens shortly before they expire, and when the server rejects one earlier.
import { remembered, renewal, session, signIn } from "@/api/session";
import { refresh } from "./oidc";

const MARGIN_MS = 60_000;
const LONGEST_MS = 24 * 3600_000;
let pending: Promise<boolean> | null = null;
let timer: ReturnType<typeof setTimeout> | undefined;

/** One tab at a time: many issuers accept a refresh token only once. */
async function alone(work: () => Promise<boolean>): Promise<boolean> {
    return "locks" in navigator ? await navigator.locks.request("heddle:renew", work) : work();
}

async function renewNow(refused: string | null): Promise<boolean> {
    const before = session.get();
    // renewed meanwhile
    if (refused !== null && before.token !== null && before.token !== refused) return true;
    if (!before.way || !before.refreshToken) return false;
    const kept = remembered();
    const isNewer = kept?.token && kept.token !== before.token && kept.way === before.way;
    if (kept && isNewer && (kept.expires ?? Infinity) > Date.now()) {
        signIn(kept, true); // another tab renewed it
        return true;
    }
    try {
        signIn(await refresh(before), kept !== null);
        return true;
    } catch {
        // the token stays in use until it expires; then the page requires a new sign-in
        return false;
    }
}

function renew(refused: string | null): Promise<boolean> {
    pending ??= alone(() => renewNow(refused)).finally(() => {
        pending = null;
    });
    return pending;
}

function plan() {
    clearTimeout(timer);
    const { expires, refreshToken } = session.get();
    if (expires === null || refreshToken === null) return;
    const left = expires - Date.now();
    const wait = Math.max(1000, left - Math.min(MARGIN_MS, left * 0.2));
    timer = setTimeout(() => void renew(null), Math.min(wait, LONGEST_MS));
}

/** A computer that was asleep has missed the timer. */
function look() {
    const { expires, refreshToken } = session.get();
    if (document.visibilityState !== "visible" || expires === null || refreshToken === null) return;
    if (expires - Date.now() < MARGIN_MS / 2) void renew(null);
}

export function keepRenewed() {
    renewal.renew = renew;
    session.subscribe(plan);
    document.addEventListener("visibilitychange", look);
    plan();
}
