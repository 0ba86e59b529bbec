// The page as users operate it: found by roles and names, as a screen reader finds elements.
import { expect, type Locator, type Page } from "@playwright/test";
import type { Heddle } from "./heddle";

export type Chat = {
    page: Page;
    /** Opens a new conversation, or a thread. */
    open(heddle: Heddle, thread?: string): Promise<void>;
    composer: Locator;
    send: Locator;
    stop: Locator;
    /** All messages shown; `message(text)` one of them. */
    messages: Locator;
    message(text: string | RegExp): Locator;
    /** Writes and sends; does not wait for the answer. */
    say(text: string): Promise<void>;
    /** Writes, sends, and waits until the agent has answered and no run is active. */
    ask(text: string, answer: string | RegExp): Promise<void>;
    /** Waits until no run is active. */
    idle(): Promise<void>;
    /** The thread in the URL. */
    thread(): Promise<string>;
};

export function chatOf(page: Page): Chat {
    const composer = page.getByLabel("Message", { exact: true });
    const send = page.getByRole("button", { name: "Send", exact: true });
    const stop = page.getByRole("button", { name: "Stop", exact: true });
    const messages = page.getByRole("article");
    const message = (text: string | RegExp) => messages.filter({ hasText: text });

    async function open(heddle: Heddle, thread?: string) {
        await page.goto(`${heddle.url}/#/${thread ? `t/${thread}` : ""}`);
        await expect(composer).toBeVisible();
    }
    async function say(text: string) {
        await composer.fill(text);
        await send.click();
    }
    async function idle() {
        await expect(stop).toBeHidden();
    }
    async function ask(text: string, answer: string | RegExp) {
        await say(text);
        await expect(message(answer).last()).toBeVisible();
        await idle();
    }
    async function thread() {
        await page.waitForURL(/#\/t\//);
        return /#\/t\/([\w-]+)/.exec(page.url())?.[1] ?? "";
    }
    return { page, open, composer, send, stop, messages, message, say, ask, idle, thread };
}
