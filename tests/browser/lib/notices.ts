// Keeps notices that expire visible, so that a slow machine has time to check them.
import type { Page } from "@playwright/test";

/** The notices' durations in the page: toasts and Undo, "Reconnected", "Copied". */
const TIMES_MS = [7000, 3000, 1500];

/** Takes effect on the next load of the page; the returned function lets the time pass. */
export async function holdNotices(page: Page): Promise<() => Promise<void>> {
    await page.addInitScript((times) => {
        const held: (() => void)[] = [];
        const start = window.setTimeout.bind(window);
        const hold = (work: () => void, after?: number, ...rest: unknown[]) =>
            after !== undefined && times.includes(after)
                ? -held.push(work)
                : start(work, after, ...rest);
        const stop = window.clearTimeout.bind(window);
        const drop = (timer?: number) => {
            if (timer !== undefined && timer < 0) held[-timer - 1] = () => {};
            else stop(timer);
        };
        Object.assign(window, {
            setTimeout: hold,
            clearTimeout: drop,
            passNotices: () => held.forEach((work) => work()),
        });
    }, TIMES_MS);
    return () => page.evaluate(() => (window as unknown as { passNotices(): void }).passNotices());
}
