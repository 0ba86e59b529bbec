// The user's messages on the page, with Edit, Retry and the switcher.
import { expect, type Locator, type Page } from "@playwright/test";
import type { Script } from "./mock";

/** Numbers its answers, so that branches differ. */
export const COUNTS: Script = { rules: [{ content: "Answer {{call}} to {{last}}" }] };

export type Turns = {
    turn(text: string | RegExp): Locator;
    /** The switcher of a message; its name is the position: "Branch 2 of 3". */
    count(text: string | RegExp): Locator;
    previous(text: string | RegExp): Locator;
    next(text: string | RegExp): Locator;
    retry(text: string | RegExp): Promise<void>;
    edit(from: string | RegExp, to: string): Promise<void>;
};

export function turnsOf(page: Page): Turns {
    const turn = (text: string | RegExp) =>
        page.getByRole("article", { name: "You" }).filter({ hasText: text });
    const button = (text: string | RegExp, name: string) =>
        turn(text).getByRole("button", { name });
    return {
        turn,
        count: (text) => turn(text).getByRole("group", { name: /^Branch/ }),
        previous: (text) => button(text, "Previous branch"),
        next: (text) => button(text, "Next branch"),
        retry: (text) => button(text, "Retry").click(),
        async edit(from, to) {
            await button(from, "Edit").click();
            const field = page.getByRole("textbox", { name: "Edited message" });
            await expect(field).toBeFocused();
            await field.fill(to);
            await page.getByRole("button", { name: "Send again" }).click();
        },
    };
}

export type Sent = {
    input: { messages: { id: string; content: unknown }[] };
    checkpoint?: { checkpoint_id: string };
    assistant_id: string;
};

/** Records the run requests of a page from now on. */
export function runsOf(page: Page): Sent[] {
    const sent: Sent[] = [];
    page.on("request", (request) => {
        if (request.method() === "POST" && request.url().endsWith("/runs/stream"))
            sent.push(request.postDataJSON() as Sent);
    });
    return sent;
}
