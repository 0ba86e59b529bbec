// The tree of all branches: display, navigation, names and pruning.
import { type Page } from "@playwright/test";
import {
    assistant,
    conversation,
    expect,
    expectNoViolations,
    fork,
    say,
    test,
    waitFor,
    type Heddle,
} from "../lib";
import { startHeldModel } from "../lib/held";
import { COUNTS, turnsOf } from "../lib/turns";

const panel = (page: Page) => page.getByRole("complementary", { name: "Branches" });
const branch = (page: Page, text: string | RegExp) =>
    panel(page).locator("[data-branch]").filter({ hasText: text });

async function openTree(page: Page) {
    await page
        .getByRole("navigation", { name: "Panels" })
        .getByRole("button", { name: "Branches" })
        .click();
    await expect(panel(page)).toBeVisible();
}

async function choose(page: Page, text: string, action: "Rename" | "Prune") {
    await panel(page)
        .getByRole("button", { name: `Actions for ${text}`, exact: true })
        .click();
    await page.getByRole("menuitem", { name: action }).click();
}

/** Two versions of the first message; the first has a second message with two versions. */
async function grown(heddle: Heddle): Promise<string> {
    const thread = await conversation(heddle, ["one", "two"]);
    await fork(heddle, thread, "two", "zwei");
    await fork(heddle, thread, "one", "uno");
    return thread;
}

test("the tree shows all branches, marks the shown one, and switches", async ({
    serve,
    chat,
    page,
}) => {
    const heddle = await serve({ script: COUNTS });
    await chat.open(heddle, await grown(heddle));
    await openTree(page);
    await expect(panel(page).locator("[data-branch]")).toHaveText([
        /^one/,
        /^two/,
        /^zwei/,
        /^uno/,
    ]);
    await expect(panel(page)).toContainText("3 branches");
    await expect(branch(page, "uno")).toHaveAttribute("aria-current", "true");
    await expect(branch(page, "two")).toContainText("1 of 2");
    await expect(branch(page, "two")).toContainText(/\d steps/);
    await expect(branch(page, "two").getByRole("time")).toHaveAttribute("title", /20\d\d/);

    await branch(page, "two").click();
    await expect(chat.message("Answer 2 to two")).toBeVisible();
    await expect(branch(page, "two")).toHaveAttribute("aria-current", "true");
    await expect(panel(page).locator("[aria-current]")).toHaveCount(1);
    await branch(page, "uno").click();
    await expect(chat.message("Answer 4 to uno")).toBeVisible();
    await expect(page).not.toHaveURL(/at=/);
    await expectNoViolations(page);
});

test("the tree grows with messages and retries", async ({ serve, chat, page }) => {
    const heddle = await serve({ script: COUNTS });
    const { retry } = turnsOf(page);
    await chat.open(heddle);
    await openTree(page);
    await expect(panel(page)).toContainText("No messages yet.");
    await chat.ask("one", "Answer 1 to one");
    await expect(branch(page, "one")).toHaveCount(1);
    await expect(panel(page)).toContainText("every version is kept");
    await retry("one");
    await expect(branch(page, "one")).toHaveCount(2);
    await expect(branch(page, "2 of 2")).toHaveAttribute("aria-current", "true");
    await fork(heddle, await chat.thread(), "one", "uno"); // by another client
    await expect(branch(page, "uno")).toHaveCount(1);
});

test("retries of one text have distinct labels", async ({ serve, chat, page }) => {
    const heddle = await serve({ script: COUNTS });
    const thread = await conversation(heddle, ["one"]);
    for (let i = 0; i < 2; i++) await fork(heddle, thread, "one");
    await fork(heddle, thread, "one", "uno");
    await chat.open(heddle, thread);
    await openTree(page);
    await expect(panel(page).locator("[data-branch]")).toHaveText([
        /^oneAnswer 1 to one1 of 4\d\d:\d\d:\d\d/,
        /^oneAnswer 2 to one2 of 4\d\d:\d\d:\d\d/,
        /^oneAnswer 3 to one3 of 4\d\d:\d\d:\d\d/,
        /^unoShown4 of 4just now\d/,
    ]);
    // So are the names of their menus, for screen readers.
    await choose(page, "one, 2 of 4", "Rename");
    await page.getByRole("textbox", { name: "Branch name" }).fill("The best one");
    await page.keyboard.press("Enter");
    await expect(branch(page, /^The best one2 of 4/)).toBeFocused();
    await expectNoViolations(page);
});

test("on a phone the selected branch is shown, and nothing behind the tree takes the focus", async ({
    serve,
    chat,
    page,
}) => {
    await page.setViewportSize({ width: 390, height: 780 });
    const heddle = await serve({ script: COUNTS });
    await chat.open(heddle, await grown(heddle));
    await expect(chat.message("Answer 4 to uno")).toBeVisible();
    await openTree(page);
    for (let i = 0; i < 12; i++) {
        await page.keyboard.press("Tab");
        const isBehind = await page.evaluate(() =>
            Boolean(document.activeElement?.closest("header, form, [role=log]")),
        );
        const isClosing = await panel(page)
            .getByRole("button", { name: "Close branches" })
            .evaluate((close) => close === document.activeElement);
        expect(isBehind && !isClosing).toBe(false);
    }
    await branch(page, "two").click();
    await expect(panel(page)).toBeHidden();
    await expect(chat.message("Answer 2 to two")).toBeVisible();
    const opener = page
        .getByRole("navigation", { name: "Panels" })
        .getByRole("button", { name: "Branches" });
    await expect(opener).toBeFocused();
});

test("the tree is used by keyboard", async ({ serve, chat, page }) => {
    const heddle = await serve({ script: COUNTS });
    await chat.open(heddle, await grown(heddle));
    await openTree(page);
    await branch(page, "one").focus();
    await page.keyboard.press("ArrowDown");
    await expect(branch(page, "two")).toBeFocused();
    await page.keyboard.press("End");
    await expect(branch(page, "uno")).toBeFocused();
    await page.keyboard.press("ArrowUp");
    await expect(branch(page, "zwei")).toBeFocused();
    await page.keyboard.press("Enter");
    await expect(chat.message("Answer 3 to zwei")).toBeVisible();
    await expect(branch(page, "zwei")).toBeFocused();
    await page.keyboard.press("Home");
    await expect(branch(page, "one")).toBeFocused();
});

test("branches have names", async ({ serve, chat, page }) => {
    const heddle = await serve({ script: COUNTS });
    const thread = await grown(heddle);
    await chat.open(heddle, thread);
    await openTree(page);
    await choose(page, "two", "Rename");
    const field = page.getByRole("textbox", { name: "Branch name" });
    await expect(field).toBeFocused();
    await field.fill("The plan");
    await page.keyboard.press("Escape");
    await expect(branch(page, "two")).toBeFocused();

    await choose(page, "two", "Rename");
    await field.fill("The plan");
    await page.keyboard.press("Enter");
    await expect(branch(page, "The plan")).toBeVisible();
    await expect(branch(page, "The plan")).toBeFocused();
    await page.reload();
    await openTree(page);
    await expect(branch(page, "The plan")).toBeVisible();

    await choose(page, "The plan", "Rename");
    await field.fill("");
    await page.getByRole("button", { name: "Save the name" }).click();
    await expect(branch(page, "two")).toBeVisible();
});

test("a branch is pruned with its descendants", async ({ serve, chat, page }) => {
    const heddle = await serve({ script: COUNTS });
    const thread = await grown(heddle);
    const { count } = turnsOf(page);
    await chat.open(heddle, thread);
    await openTree(page);
    await branch(page, "two").click();
    await expect(chat.message("Answer 2 to two")).toBeVisible();

    await choose(page, "one", "Prune");
    const dialog = page.getByRole("dialog", { name: "Prune this branch?" });
    await expect(dialog).toContainText("This removes 2 branches with 6 messages");
    await expect(dialog).toContainText("frees its space");
    await dialog.getByRole("button", { name: "Cancel" }).click();
    await expect(dialog).toBeHidden();
    await expect(branch(page, "one")).toBeVisible();

    await choose(page, "one", "Prune");
    await dialog.getByRole("button", { name: "Prune" }).click();
    await expect(dialog).toBeHidden();
    await expect(panel(page).locator("[data-branch]")).toHaveText([/^uno/]);
    // The shown branch is gone: the newest remaining one is shown.
    await expect(chat.message("Answer 4 to uno")).toBeVisible();
    await expect(count("uno")).toHaveCount(0);
    await expect(page).not.toHaveURL(/at=/);
    await expect(panel(page).getByRole("button", { name: /^Actions/ })).toHaveCount(1);
    await panel(page)
        .getByRole("button", { name: /^Actions/ })
        .click();
    await expect(page.getByRole("menuitem", { name: "Prune" })).toHaveCount(0);
});

test("nothing is pruned during a run", async ({ serve, chat, page, watch }) => {
    watch.allow(/409/);
    const held = await startHeldModel();
    const heddle = await serve({ env: { OPENAI_BASE_URL: held.baseUrl } });
    const { retry } = turnsOf(page);
    const done = conversation(heddle, ["hello"]);
    await held.asked(1);
    held.say(1, "First answer");
    held.end(1);
    await chat.open(heddle, await done);
    await retry("hello");
    await held.asked(2);
    held.say(2, "Second");
    await expect(chat.message("Second")).toBeVisible();
    await openTree(page);
    await waitFor(() => branch(page, "1 of 2").count(), "the first branch");
    await panel(page)
        .getByRole("button", { name: /^Actions/ })
        .first()
        .click();
    await page.getByRole("menuitem", { name: "Prune" }).click();
    const dialog = page.getByRole("dialog", { name: "Prune this branch?" });
    await dialog.getByRole("button", { name: "Prune" }).click();
    await expect(dialog.getByRole("alert")).toContainText("An answer is being written.");
    held.end(2);
    await chat.idle();
    await dialog.getByRole("button", { name: "Prune" }).click();
    await expect(dialog).toBeHidden();
    await expect(chat.message("Second")).toBeVisible();
    await held.close();
});

test("each agent has a tree", async ({ serve, chat, page }) => {
    const heddle = await serve({ script: COUNTS });
    const ann = await assistant(heddle, "Ann");
    const bob = await assistant(heddle, "Bob");
    const thread = await conversation(heddle, ["to Ann"], { assistant: ann });
    await fork(heddle, thread, "to Ann", "dear Ann", ann);
    await say(heddle, thread, "to Bob", { assistant: bob });
    await chat.open(heddle, thread);
    await openTree(page);
    await expect(panel(page).getByRole("heading", { level: 3 })).toHaveText([
        /Ann.*2 branches/,
        /Bob.*1 branch/,
    ]);
    await branch(page, "to Ann").click();
    await expect(chat.message("Answer 1 to to Ann")).toBeVisible();
    await expect(chat.message("Answer 3 to to Bob")).toBeVisible();
});
