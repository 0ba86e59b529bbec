// Signing in as users do it, and a recorder for secrets that leak.
import type { BrowserContext, Page } from "@playwright/test";

export const title = (page: Page) => page.getByRole("heading", { name: "Sign in to Heddle" });
export const side = (page: Page) => page.getByRole("navigation", { name: "Conversations" });
export const composer = (page: Page) => page.getByRole("textbox", { name: "Message" });

export async function paste(page: Page, token: string) {
    await page.getByLabel("Token or API key").fill(token);
    await page.getByRole("button", { name: "Sign in", exact: true }).click();
}

/** Records every requested URL and every line of the console. */
export function overhear(context: BrowserContext): string[] {
    const heard: string[] = [];
    context.on(
        "request",
        (request) => void heard.push(request.url(), request.headers().referer ?? ""),
    );
    context.on("console", (message) => void heard.push(message.text()));
    const follow = (page: Page) =>
        page.on("framenavigated", (frame) => void heard.push(frame.url()));
    for (const page of context.pages()) follow(page);
    context.on("page", follow);
    return heard;
}
