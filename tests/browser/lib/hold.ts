// Requests of the page that wait, so that what is seen meanwhile can be looked at.
import type { Page } from "@playwright/test";

/** Requests to `path` wait until they are let go. */
export async function hold(page: Page, path: string | RegExp, method = "GET") {
    let letGo = () => {};
    const gate = new Promise<void>((resolve) => (letGo = resolve));
    let count = 0;
    await page.route(path, async (route) => {
        if (route.request().method() !== method) return route.fallback();
        count += 1;
        await gate;
        await route.continue().catch(() => undefined); // nobody waits for it any more
    });
    return { letGo, held: () => count };
}
