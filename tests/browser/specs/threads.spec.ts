// The list of conversations, and the actions on one of them.
import type { Page, Request } from "@playwright/test";
import {
    conversation,
    expect,
    expectNoViolations,
    FAILED_REQUEST,
    test,
    waitFor,
    type Heddle,
} from "../lib";
import { holdNotices } from "../lib/notices";

const side = (page: Page) => page.getByRole("navigation", { name: "Conversations" });
const item = (page: Page, title: string | RegExp) => side(page).getByRole("link", { name: title });
const heading = (page: Page, name: string) => page.getByRole("heading", { name, level: 1 });

/** Threads without messages. */
async function make(heddle: Heddle, titles: string[], token?: string): Promise<string[]> {
    const made: string[] = [];
    for (const title of titles) {
        const { thread_id } = await heddle.client(token).threads.create({ metadata: { title } });
        made.push(thread_id);
    }
    return made;
}

async function choose(page: Page, action: string) {
    await page.getByRole("button", { name: "Conversation menu" }).click();
    await page.getByRole("menuitem", { name: action }).click();
}

/** Reports whether the server still has the thread. */
async function isThere(heddle: Heddle, thread: string): Promise<boolean> {
    return (await fetch(`${heddle.url}/threads/${thread}`)).status === 200;
}

test("conversations are listed, found by title, and opened", async ({ serve, page }) => {
    const heddle = await serve();
    const bodies: string[] = [];
    page.on("request", (request: Request) => {
        if (request.url().endsWith("/threads/search")) bodies.push(request.postData() ?? "");
    });
    await conversation(heddle, ["hello"], { title: "Warp and weft" });
    const second = await conversation(heddle, ["hello"], { title: "A twill scarf" });
    // It is also today for the page, though midnight may pass in between.
    await page.clock.setFixedTime((await heddle.client().threads.get(second)).updated_at);
    await page.goto(heddle.url);
    await expect(side(page).getByRole("heading", { name: "Today" })).toBeVisible();
    await expect(side(page).getByRole("listitem")).toHaveCount(2);
    await expect(item(page, /A twill scarf.*agent/)).toBeVisible();

    await page.getByLabel("Search conversations").fill("WARP");
    await expect(item(page, /A twill scarf/)).toBeHidden();
    await expect(item(page, /Warp and weft/)).toBeVisible();
    await page.getByLabel("Search conversations").fill("nothing like it");
    await expect(
        side(page).getByText("No conversation has “nothing like it” in its title or messages."),
    ).toBeVisible();
    await page.getByRole("button", { name: "Clear the search" }).click();
    await expect(side(page).getByRole("listitem")).toHaveCount(2);

    await item(page, /Warp and weft/).click();
    await expect(heading(page, "Warp and weft")).toBeVisible();
    await expect(item(page, /Warp and weft/)).toHaveAttribute("aria-current", "page");
    await expect(page).toHaveTitle("Warp and weft · Heddle");
    expect(bodies.length).toBeGreaterThan(0);
    for (const body of bodies) {
        const { select } = JSON.parse(body) as { select: string[] };
        expect(select, "lists carry no values").toEqual(expect.not.arrayContaining(["values"]));
    }
    await expectNoViolations(page);
});

test("a conversation without a title shows its first message, and is found by its messages", async ({
    serve,
    page,
}) => {
    const heddle = await serve();
    await conversation(heddle, ["Which loom weaves damask?", "And which one brocade?"]);
    await conversation(heddle, ["hello"], { title: "A twill scarf" });
    await page.goto(heddle.url);
    await expect(item(page, /^Which loom weaves damask\?/)).toBeVisible();
    await page.getByLabel("Search conversations").fill("BROCADE which");
    await expect(item(page, /A twill scarf/)).toBeHidden();
    await item(page, /^Which loom weaves damask\?/).click();
    await expect(heading(page, "Which loom weaves damask?")).toBeVisible();
    await expect(page).toHaveTitle("Which loom weaves damask? · Heddle");
});

test("an empty list has a notice, and a new conversation appears in it", async ({
    serve,
    page,
    chat,
}) => {
    const heddle = await serve();
    await chat.open(heddle);
    await expect(side(page).getByText("Your conversations will appear here.")).toBeVisible();
    await chat.ask("Tell me about looms", "You said: Tell me about looms");
    await expect(item(page, /Tell me about looms/)).toHaveAttribute("aria-current", "page");
    await side(page).getByRole("button", { name: "New conversation" }).click();
    await expect(heading(page, "New conversation")).toBeVisible();
});

test("a long list is loaded in pages", async ({ serve, page }) => {
    const heddle = await serve();
    const titles = Array.from({ length: 70 }, (_, at) => `Thread ${String(at).padStart(2, "0")}`);
    await make(heddle, titles);
    await page.goto(heddle.url);
    await expect(item(page, /Thread 69/)).toBeVisible();
    await expect(item(page, /Thread 00/)).toHaveCount(0);
    // Scrolling to the end loads the next page.
    await item(page, /Thread 40/).scrollIntoViewIfNeeded();
    await expect(side(page).getByRole("listitem")).toHaveCount(60);
    await item(page, /Thread 10/).scrollIntoViewIfNeeded();
    await expect(side(page).getByRole("listitem")).toHaveCount(70);
    await expect(side(page).getByRole("button", { name: "Show more" })).toBeHidden();
});

test("a button loads more", async ({ serve, page }) => {
    const heddle = await serve();
    await page.addInitScript(() => {
        // A browser without IntersectionObserver events.
        window.IntersectionObserver = class {
            observe() {}
            disconnect() {}
        } as unknown as typeof IntersectionObserver;
    });
    await make(
        heddle,
        Array.from({ length: 32 }, (_, at) => `Thread ${at}`),
    );
    await page.goto(heddle.url);
    await expect(side(page).getByRole("listitem")).toHaveCount(30);
    await side(page).getByRole("button", { name: "Show more" }).press("Enter");
    await expect(side(page).getByRole("listitem")).toHaveCount(32);
});

test("the state of a thread is shown beside its title", async ({ serve, page, weather, chat }) => {
    const script = {
        rules: [
            { when: { contains: "break" }, error: { status: 400 } },
            { when: { contains: "wait" }, hang: true },
            {
                when: { contains: "weather" },
                tool_calls: [{ name: "weather", args: { city: "Rome" } }],
            },
        ],
    };
    const heddle = await serve({ script });
    const client = heddle.client();
    const [broken = "", busy = "", asking = ""] = await make(heddle, ["Broken", "Busy", "Asking"]);
    const input = (content: string) => ({ input: { messages: [{ type: "human", content }] } });
    const config = { configurable: { http_tools: [weather.tool], approval: ["weather"] } };
    await client.runs.wait(broken, "agent", { ...input("break"), raiseError: false });
    await client.runs.wait(asking, "agent", { ...input("weather"), config });
    await client.runs.create(busy, "agent", input("wait"));
    await chat.open(heddle);
    await expect(item(page, /Broken.*failed/)).toBeVisible();
    await expect(item(page, /Asking.*needs a reply/)).toBeVisible();
    await expect(item(page, /Busy.*working/)).toBeVisible();
    await expectNoViolations(page);
    for (const run of await client.runs.list(busy))
        await client.runs.cancel(busy, run.run_id, true);
    // Also interrupted, but by a stop: it has no request.
    await expect(item(page, /Busy.*stopped/)).toBeVisible();
    await expect(item(page, /needs a reply/)).toHaveCount(1);
});

test("a conversation is renamed by button, menu and F2", async ({ serve, page }) => {
    const heddle = await serve();
    const [thread = ""] = await make(heddle, ["Old name"]);
    const field = page.getByLabel("Title of the conversation");
    await page.goto(`${heddle.url}/#/t/${thread}`);
    await page.getByRole("button", { name: "Rename" }).click();
    await expect(field).toBeFocused();
    await field.fill("Never");
    await field.press("Escape");
    await expect(heading(page, "Old name")).toBeVisible();
    await expect(page.getByRole("button", { name: "Rename" })).toBeFocused();

    await page.keyboard.press("F2");
    await field.fill("By the key");
    await field.press("Enter");
    await expect(heading(page, "By the key")).toBeVisible();
    await expect(item(page, /By the key/)).toBeVisible();

    await choose(page, "Rename");
    await field.fill("By the menu");
    await field.press("Enter");
    await expect(item(page, /By the menu/)).toBeVisible();
    await page.reload();
    await expect(heading(page, "By the menu")).toBeVisible();
});

test("a rejected title is reverted, with the reason", async ({ serve, page, watch }) => {
    watch.allow(FAILED_REQUEST);
    const heddle = await serve();
    const [thread = ""] = await make(heddle, ["Kept"]);
    await page.route(/\/threads\/[^/]+$/, (route) =>
        route.request().method() === "PATCH"
            ? route.fulfill({ status: 409, json: { detail: "not today" } })
            : route.continue(),
    );
    await page.goto(`${heddle.url}/#/t/${thread}`);
    await page.getByRole("button", { name: "Rename" }).click();
    await page.getByLabel("Title of the conversation").fill("Other");
    await page.keyboard.press("Enter");
    await expect(page.getByText("Not renamed. not today")).toBeVisible();
    await expect(heading(page, "Kept")).toBeVisible();
});

test("deleting can be undone", async ({ serve, page }) => {
    const heddle = await serve();
    const [thread = ""] = await make(heddle, ["Precious"]);
    const pass = await holdNotices(page);
    await page.goto(`${heddle.url}/#/t/${thread}`);
    await choose(page, "Delete");
    await expect(item(page, /Precious/)).toBeHidden();
    await expect(heading(page, "New conversation")).toBeVisible();
    await page.getByRole("button", { name: "Undo" }).click();
    await expect(item(page, /Precious/)).toBeVisible();
    await expect(heading(page, "Precious")).toBeVisible();
    await pass();
    await page.reload();
    await expect(heading(page, "Precious")).toBeVisible();
    expect(await isThere(heddle, thread)).toBe(true);
});

test("the undo time pauses while the pointer or focus is on the notice", async ({
    serve,
    page,
}) => {
    const heddle = await serve();
    const [thread = ""] = await make(heddle, ["Precious"]);
    const pass = await holdNotices(page);
    await page.goto(`${heddle.url}/#/t/${thread}`);
    const undo = page.getByRole("button", { name: "Undo" });
    await choose(page, "Delete");
    await undo.focus();
    await pass();
    await undo.blur();
    await undo.hover();
    await pass();
    await expect(undo).toBeVisible();
    expect(await isThere(heddle, thread)).toBe(true);
    await page.mouse.move(1, 1);
    await pass();
    await expect(undo).toBeHidden();
    await waitFor(async () => !(await isThere(heddle, thread)), "it is gone");
});

test("closing the notice of a deletion deletes at once", async ({ serve, page }) => {
    const heddle = await serve();
    const [thread = ""] = await make(heddle, ["Gone"]);
    await holdNotices(page);
    await page.goto(`${heddle.url}/#/t/${thread}`);
    await choose(page, "Delete");
    await page.getByRole("button", { name: "Dismiss" }).click();
    await waitFor(async () => !(await isThere(heddle, thread)), "it is gone");
    await expect(item(page, /Gone/)).toBeHidden();
});

test("a deletion without undo takes effect after the undo time", async ({ serve, page }) => {
    const heddle = await serve();
    const [thread = ""] = await make(heddle, ["Fading"]);
    await page.goto(`${heddle.url}/#/t/${thread}`);
    await choose(page, "Delete");
    await waitFor(async () => !(await isThere(heddle, thread)), "it is gone");
    await expect(item(page, /Fading/)).toBeHidden();
    await expect(page.getByRole("button", { name: "Undo" })).toBeHidden();
});

test("several are deleted together, and one of them is restored", async ({ serve, page }) => {
    const heddle = await serve();
    const [one = "", two = "", three = ""] = await make(heddle, ["One", "Two", "Three"]);
    const pass = await holdNotices(page);
    for (const [thread, title] of [
        [one, "One"],
        [two, "Two"],
        [three, "Three"],
    ] as const) {
        await page.goto(`${heddle.url}/#/t/${thread}`);
        await expect(heading(page, title)).toBeVisible();
        await choose(page, "Delete");
        await expect(item(page, title)).toBeHidden();
    }
    const undo = page
        .getByText("Deleted “Two”")
        .locator("..")
        .getByRole("button", { name: "Undo" });
    await undo.click();
    await expect(item(page, /Two/)).toBeVisible();
    await page.mouse.move(1, 1); // the next notice has come below it
    await pass();
    await waitFor(
        async () => !(await isThere(heddle, one)) && !(await isThere(heddle, three)),
        "both are gone",
    );
    expect(await isThere(heddle, two)).toBe(true);
    await expect(item(page, /Two/)).toBeVisible();
    await expect(side(page).getByRole("listitem")).toHaveCount(1);
});

test("a closing page performs its pending deletions", async ({ serve, page }) => {
    const heddle = await serve();
    const [thread = ""] = await make(heddle, ["Going"]);
    await holdNotices(page);
    await page.goto(`${heddle.url}/#/t/${thread}`);
    await choose(page, "Delete");
    await expect(item(page, /Going/)).toBeHidden();
    await page.goto("about:blank");
    await waitFor(async () => !(await isThere(heddle, thread)), "it is gone");
});

test("a delete that fails brings the conversation back, with the reason", async ({
    serve,
    page,
    watch,
}) => {
    watch.allow(FAILED_REQUEST);
    const heddle = await serve();
    const [thread = ""] = await make(heddle, ["Stubborn"]);
    const pass = await holdNotices(page);
    await page.route(/\/threads\/[^/]+$/, (route) =>
        route.request().method() === "DELETE"
            ? route.fulfill({ status: 500, json: { detail: "the disk is on fire" } })
            : route.continue(),
    );
    await page.goto(`${heddle.url}/#/t/${thread}`);
    await choose(page, "Delete");
    await expect(item(page, /Stubborn/)).toBeHidden();
    await pass();
    await expect(
        page.getByText("“Stubborn” could not be deleted. the disk is on fire"),
    ).toBeVisible();
    await expect(item(page, /Stubborn/)).toBeVisible();
});

test("details: size, time to live, pruning", async ({ serve, page }) => {
    const heddle = await serve();
    await holdNotices(page);
    const thread = await conversation(heddle, ["one", "two", "three"], { title: "Heavy" });
    const ttl = async () =>
        (
            await heddle.ask<{ ttl: { ttl: number; expires_at: string | null } | null }>(
                "GET",
                `/threads/${thread}?include=ttl`,
            )
        ).ttl;
    const size = async () =>
        (
            await heddle.ask<{ usage: { checkpoints: number } }>(
                "GET",
                `/threads/${thread}?include=usage`,
            )
        ).usage.checkpoints;
    await page.goto(`${heddle.url}/#/t/${thread}`);
    await choose(page, "Details and sharing");
    const dialog = page.getByRole("dialog", { name: "Heavy" });
    await expect(dialog.getByText(/[\d.]+ KB in \d+ checkpoints/)).toBeVisible();
    await expect(dialog.getByText(thread)).toBeVisible();
    await expectNoViolations(page);

    await expect(dialog.getByText("Kept until it is deleted.")).toBeVisible();
    await dialog.getByLabel("Delete when unused for").selectOption("7 days");
    await expect(dialog.getByText(/Deleted in 7 days, on /)).toBeVisible();
    expect((await ttl())?.ttl).toBe(7 * 24 * 60);
    await dialog.getByLabel("Delete when unused for").selectOption("Custom time");
    await dialog.getByLabel("Minutes").fill("300");
    await dialog.getByRole("button", { name: "Set" }).click();
    await expect(dialog.getByText(/Deleted in 5 hours/)).toBeVisible();
    expect((await ttl())?.ttl).toBe(300);
    await dialog.getByLabel("Delete when unused for").selectOption("Never");
    await expect(dialog.getByText("Kept until it is deleted.")).toBeVisible();
    expect((await ttl())?.expires_at ?? null).toBeNull();

    const before = await size();
    await dialog
        .getByLabel("Keep", { exact: true })
        .selectOption("Keep only the latest checkpoint");
    await dialog.getByRole("button", { name: "Preview" }).click();
    await expect(
        dialog.getByText(/\d+ checkpoints and \d+ writes would be removed: [\d.]+ KB\./),
    ).toBeVisible();
    expect(await size(), "nothing has gone yet").toBe(before);
    await dialog.getByRole("button", { name: "Remove", exact: true }).click();
    await expect(page.getByText(/Freed /)).toBeVisible();
    expect(await size()).toBeLessThan(before);
    await dialog.getByRole("button", { name: "Preview" }).click();
    await expect(dialog.getByText("Nothing to remove.")).toBeVisible();
    await page.keyboard.press("Escape");
    await expect(dialog).toBeHidden();
});

test("a conversation is copied and exported", async ({ serve, page }) => {
    const heddle = await serve();
    const thread = await conversation(heddle, ["What is a heddle?"], { title: "The heddle" });
    await page.goto(`${heddle.url}/#/t/${thread}`);
    await expect(
        page.getByRole("article").filter({ hasText: "You said: What is a heddle?" }),
    ).toBeVisible();
    const saved = async (kind: string) => {
        const download = page.waitForEvent("download");
        await choose(page, `Export as ${kind}`);
        const file = await download;
        const pieces: Buffer[] = [];
        for await (const piece of await file.createReadStream()) pieces.push(piece as Buffer);
        return { name: file.suggestedFilename(), text: Buffer.concat(pieces).toString() };
    };
    const markdown = await saved("Markdown");
    expect(markdown.name).toBe("the-heddle.md");
    expect(markdown.text).toBe(
        "# The heddle\n\n## You\n\nWhat is a heddle?\n\n## agent\n\nYou said: What is a heddle?\n",
    );
    const json = JSON.parse((await saved("JSON")).text) as { messages: { content: string }[] };
    expect(json.messages.map((message) => message.content)).toEqual([
        "What is a heddle?",
        "You said: What is a heddle?",
    ]);

    await choose(page, "Copy");
    await expect(heading(page, "The heddle (copy)")).toBeVisible();
    await expect(item(page, "The heddle (copy)")).toHaveAttribute("aria-current", "page");
    await expect(
        page.getByRole("article").filter({ hasText: "You said: What is a heddle?" }),
    ).toBeVisible();
});

test("a list that fails to load can be retried", async ({ serve, page, watch }) => {
    watch.allow(FAILED_REQUEST);
    const heddle = await serve();
    await make(heddle, ["Found again"]);
    let isBroken = true;
    await page.route("**/threads/search", (route) =>
        isBroken
            ? route.fulfill({ status: 500, json: { detail: "out of yarn" } })
            : route.continue(),
    );
    await page.goto(heddle.url);
    await expect(side(page).getByRole("alert")).toContainText(
        "Could not load the conversations. out of yarn",
    );
    await expectNoViolations(page);
    isBroken = false;
    await side(page).getByRole("button", { name: "Try again" }).click();
    await expect(item(page, /Found again/)).toBeVisible();
    await expect(side(page).getByRole("alert")).toBeHidden();
});

test("on a phone the list covers the page and keeps the focus", async ({ serve, page }) => {
    const heddle = await serve();
    await make(heddle, ["Small screen"]);
    await page.setViewportSize({ width: 390, height: 780 });
    await page.goto(heddle.url);
    const open = page.getByRole("button", { name: "Conversations", exact: true });
    await expect(item(page, /Small screen/)).toBeHidden();
    await open.press("Enter");
    await expect(page.getByRole("button", { name: "Close the list" })).toBeFocused();
    await expectNoViolations(page);
    const isInside = () => page.evaluate(() => document.activeElement?.closest("nav") !== null);
    await page.keyboard.press("Shift+Tab");
    expect(await isInside()).toBe(true);
    for (let presses = 0; presses < 20; presses++) {
        await page.keyboard.press("Tab");
        expect(await isInside()).toBe(true);
    }
    await page.keyboard.press("Escape");
    await expect(item(page, /Small screen/)).toBeHidden();
    await expect(open).toBeFocused();
    await open.click();
    await item(page, /Small screen/).click();
    await expect(heading(page, "Small screen")).toBeVisible();
    await expect(item(page, /Small screen/)).toBeHidden();
    expect(
        await page.evaluate(() => document.documentElement.scrollWidth <= window.innerWidth),
    ).toBe(true);
});

test("light and dark are chosen, and kept", async ({ serve, page }) => {
    const heddle = await serve();
    await page.goto(heddle.url);
    const theme = () => page.evaluate(() => document.documentElement.dataset.theme);
    expect(await theme()).toBe("light");
    await page.getByRole("radio", { name: "Dark" }).check();
    await expect.poll(theme).toBe("dark");
    await page.reload();
    await expect(page.getByRole("radio", { name: "Dark" })).toBeChecked();
    expect(await theme()).toBe("dark");
    await page.getByRole("radio", { name: "Auto" }).check();
    await page.emulateMedia({ colorScheme: "dark" });
    await expect.poll(theme).toBe("dark");
    await page.emulateMedia({ colorScheme: "light" });
    await expect.poll(theme).toBe("light");
});
