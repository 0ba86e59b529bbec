// An unreachable, slow or refusing server: what is shown, what is kept, and recovery.
import type { Page } from "@playwright/test";
import { conversation, expect, expectNoViolations, FAILED_REQUEST, test } from "../lib";
import { hold } from "../lib/hold";

const side = (page: Page) => page.getByRole("navigation", { name: "Conversations" });
const lost = (page: Page) => page.getByText("The server can't be reached. Reconnecting…");
const stays = (page: Page) =>
    page.getByText("The server can't be reached. Your draft stays here until it is back.");

test("a server outage loses nothing", async ({ serve, chat, page, watch }) => {
    watch.allow(FAILED_REQUEST);
    const heddle = await serve();
    await chat.open(heddle);
    await chat.ask("before", "You said: before");
    await chat.composer.fill("in between");
    await heddle.kill();
    await page.evaluate(() => document.dispatchEvent(new Event("visibilitychange")));
    await expect(lost(page)).toBeVisible();
    await expect(stays(page)).toBeVisible();
    await expect(chat.send).toBeDisabled();
    await expect(chat.composer).toBeEnabled();
    await chat.composer.fill("in between, and more");
    await expect(chat.message("You said: before")).toBeVisible();
    await expectNoViolations(page);

    await heddle.start();
    await expect(lost(page)).toBeHidden();
    await expect(chat.composer).toHaveValue("in between, and more");
    await chat.send.click();
    await expect(chat.message("You said: in between, and more")).toBeVisible();
});

test("the page reports that the device is offline", async ({
    serve,
    chat,
    page,
    context,
    watch,
}) => {
    watch.allow(FAILED_REQUEST);
    const heddle = await serve();
    const thread = await conversation(heddle, ["hello"], { title: "On the train" });
    await chat.open(heddle, thread);
    await expect(chat.message("You said: hello")).toBeVisible();
    await context.setOffline(true);
    await page.evaluate(() => document.dispatchEvent(new Event("visibilitychange")));
    const offline = page.getByText(
        "You are offline. Nothing is lost: the page reconnects when you are back online.",
    );
    await expect(offline).toBeVisible();
    await context.setOffline(false);
    await expect(offline).toBeHidden();
    await chat.ask("again", "You said: again");
});

test("a page opened during an outage waits for the server", async ({ serve, page, watch }) => {
    watch.allow(FAILED_REQUEST);
    const heddle = await serve();
    let isGone = true;
    await page.route("**/page/settings", (route) =>
        isGone ? route.abort("connectionrefused") : route.continue(),
    );
    await page.route("**/ok", (route) =>
        isGone ? route.abort("connectionrefused") : route.continue(),
    );
    await page.goto(heddle.url);
    await expect(page.getByRole("heading", { name: "The server is not responding" })).toBeVisible();
    await expectNoViolations(page);
    isGone = false;
    await expect(page.getByRole("textbox", { name: "Message" })).toBeVisible();
});

test("a slow server shows progress, then the page", async ({ serve, page }) => {
    const heddle = await serve();
    const reading = await hold(page, "**/page/settings");
    await page.goto(heddle.url);
    await expect(page.getByText("Connecting…")).toBeVisible();
    reading.letGo();
    await expect(page.getByRole("textbox", { name: "Message" })).toBeVisible();
    await expect(page.getByText("Connecting…")).toBeHidden();
});

test("a part of the page that is not loaded yet waits for the server", async ({
    serve,
    chat,
    page,
    watch,
}) => {
    watch.allow(FAILED_REQUEST);
    const heddle = await serve();
    await chat.open(heddle);
    await chat.composer.fill("not sent yet");
    let isGone = true;
    await page.route(/\/(assets\/|ok$)/, (route) =>
        isGone ? route.abort("connectionrefused") : route.continue(),
    );
    await page.getByRole("button", { name: "Branches" }).click();
    const drawer = page.getByRole("complementary", { name: "Branches" });
    await expect(drawer.getByText("Loading…")).toBeVisible();
    await expect(lost(page)).toBeVisible();
    await expect(chat.composer).toHaveValue("not sent yet");
    isGone = false;
    await expect(drawer.getByText("No messages yet.")).toBeVisible();
    // Styled, whichever part loaded first.
    await expect(drawer.getByText("No messages yet.").locator("..")).toHaveCSS("display", "flex");
    await expect(lost(page)).toBeHidden();
});

test("a part of the page that the server no longer has shows an error", async ({
    serve,
    chat,
    page,
    watch,
}) => {
    watch.allow(FAILED_REQUEST, /dynamically imported module|error boundary/);
    const heddle = await serve();
    await chat.open(heddle);
    await chat.composer.fill("not sent yet");
    await page.route(/\/assets\//, (route) => route.fulfill({ status: 404 }));
    await page.getByRole("button", { name: "State" }).click();
    const drawer = page.getByRole("complementary", { name: "State" });
    await expect(drawer.getByRole("alert")).toContainText("This part of the page failed to load");
    await expect(chat.composer).toHaveValue("not sent yet");
    await expectNoViolations(page);
    await page.unroute(/\/assets\//);
    await drawer.getByRole("button", { name: "Reload the page" }).click();
    await expect(drawer).toBeHidden();
    await expect(chat.composer).toHaveValue("not sent yet");
    await page.getByRole("button", { name: "State" }).click();
    await expect(drawer.getByText("No state is stored yet.")).toBeVisible();
});

test("a thread that does not exist shows an error", async ({ heddle, page, watch }) => {
    watch.allow(FAILED_REQUEST);
    for (const thread of [crypto.randomUUID(), "not-an-id", "%E0%A4%A"]) {
        await page.goto(`${heddle.url}/#/t/${thread}`);
        await expect(page.getByRole("heading", { name: "Conversation not found" })).toBeVisible();
    }
    await expectNoViolations(page);
    await page.getByRole("alert").getByRole("button", { name: "New conversation" }).click();
    await expect(page.getByRole("heading", { name: "New conversation", level: 1 })).toBeVisible();
});

for (const { status, detail, title, text } of [
    {
        status: 500,
        detail: "out of yarn",
        title: "The conversation could not be loaded",
        text: "out of yarn",
    },
    {
        status: 403,
        detail: "no",
        title: "You cannot read this conversation",
        text: "Ask its owner to share it with you.",
    },
]) {
    test(`a thread refused with ${status} can be loaded later`, async ({ heddle, page, watch }) => {
        watch.allow(FAILED_REQUEST);
        const thread = await conversation(heddle, ["hello"], { title: "Refused" });
        let isRefused = true;
        await page.route(new RegExp(`/threads/${thread}/`), (route) =>
            isRefused ? route.fulfill({ status, json: { detail } }) : route.continue(),
        );
        await page.goto(`${heddle.url}/#/t/${thread}`);
        const alert = page.getByRole("main").getByRole("alert");
        await expect(alert.getByRole("heading", { name: title })).toBeVisible();
        await expect(alert).toContainText(text);
        await expectNoViolations(page);
        isRefused = false;
        await alert.getByRole("button", { name: "Try again" }).click();
        await expect(
            page.getByRole("article").filter({ hasText: "You said: hello" }),
        ).toBeVisible();
        await expect(alert).toBeHidden();
        await expect(side(page)).toBeVisible();
    });
}
