// Holds requests of the page, so that a test can check the page meanwhile.
import type { Page } from "@playwright/test";

/** Requests to `path` wait for letGo(). */
export async function hold(page: Page, path: string | RegExp, method = "GET") {
    let letGo = () => {};
    const gate = new Promise<void>((resolve) => (letGo = resolve));
    let count = 0;
    await page.route(path, async (route) => {
        if (route.request().method() !== method) return route.fallback();
        count += 1;
        await gate;
        await route.continue().catch(() => undefined); // the request was cancelled
    });
    return { letGo, held: () => count };
}
