// Layout: in small windows, with other colours, after each step.
import { conversation, expect, expectNoViolations, fork, forkOf, say, test } from "../lib";
import { holdNotices } from "../lib/notices";
import { openDrawer } from "../lib/states";
import type { Locator, Page } from "@playwright/test";

const PHONE = { width: 390, height: 844 };
/** 1280 by 1024 at 400 %: WCAG 1.4.10. */
const SMALLEST = { width: 320, height: 256 };
/** 1440 by 900 at 200 %. */
const ZOOMED = { width: 720, height: 450 };

/** The whole element is in the window. */
async function expectInside(page: Page, part: Locator) {
    await expect(part).toBeVisible();
    const { width, height } = page.viewportSize()!;
    await expect(async () => {
        const box = (await part.boundingBox())!;
        expect(box.x).toBeGreaterThanOrEqual(0);
        expect(box.x + box.width).toBeLessThanOrEqual(width);
        expect(box.y).toBeGreaterThanOrEqual(0);
        expect(box.y + box.height).toBeLessThanOrEqual(height);
    }).toPass({ timeout: 60_000 });
}

test("edit and retry are visible without hovering", async ({ heddle, chat, page }) => {
    const thread = await conversation(heddle, ["one", "two"]);
    await chat.open(heddle, thread);
    await expect(chat.message("You said: two")).toBeVisible();
    await page.mouse.move(1, 1);
    for (const name of ["Edit", "Retry"]) {
        const buttons = page.getByRole("button", { name, exact: true });
        await expect(buttons).toHaveCount(2);
        for (const tools of await buttons.locator("..").all())
            await expect(tools).toHaveCSS("opacity", "1");
    }
});

test("in a wide window the icons of the header have labels", async ({ heddle, chat, page }) => {
    await chat.open(heddle);
    const tools = page.getByRole("navigation", { name: "Panels" });
    for (const name of ["Branches", "State", "Graph"])
        await expect(tools.getByText(name, { exact: true })).toBeVisible();
    await page.setViewportSize(PHONE);
    await expect(tools.getByText("Branches", { exact: true })).toBeHidden();
    await expect(tools.getByRole("button", { name: "Branches" })).toBeVisible();
});

test("the first screen starts at its top, however small", async ({ serve, chat, page }) => {
    const heddle = await serve();
    for (const size of [ZOOMED, { width: 320, height: 568 }]) {
        await page.setViewportSize(size);
        await chat.open(heddle);
        await expectInside(page, page.getByRole("heading", { name: "How can I help you?" }));
    }
});

for (const [name, size] of Object.entries({ "on a phone": PHONE, "at 400 %": SMALLEST })) {
    test(`the menu of a conversation stays in the window ${name}`, async ({
        heddle,
        chat,
        page,
    }) => {
        const thread = await conversation(heddle, ["hello"], { title: "A title of some length" });
        await page.setViewportSize(size);
        await chat.open(heddle, thread);
        await page.getByRole("button", { name: "Conversation menu" }).click();
        const items = page.getByRole("menu").getByRole("menuitem");
        await expect(items).toHaveCount(7);
        for (const item of await items.all()) {
            await item.focus();
            await expectInside(page, item);
        }
    });
}

test("an edited message stays in a small window", async ({ serve, chat, page }) => {
    const content = Array.from({ length: 12 }, (_, at) => `Line ${at}`).join("\n\n");
    const heddle = await serve({ script: { rules: [{ content }] } });
    const thread = await conversation(heddle, ["hello"]);
    const width = 320;
    await page.setViewportSize({ width, height: 568 });
    await chat.open(heddle, thread);
    await expect(chat.message("Line 11")).toBeVisible();
    // The whole conversation except some pixels: the list is at its end and shows its start.
    const log = page.getByRole("log");
    const over = await log.evaluate((one) => one.scrollHeight - one.clientHeight);
    await page.setViewportSize({ width, height: 568 + over - 16 });
    const edit = page.getByRole("button", { name: "Edit", exact: true });
    await expect.poll(() => log.evaluate((one) => one.scrollTop)).toBeGreaterThan(0);
    await edit.click();
    const editor = page.getByRole("textbox", { name: "Edited message" });
    await expect(editor).toBeFocused();
    // Growing content does not move it: sizes are measured once per frame.
    await page.evaluate(
        () => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done))),
    );
    await expect(editor).toBeInViewport({ ratio: 1 });
    await page.keyboard.press("Escape");
    await expect(edit).toBeFocused();
});

test("closing or deleting an element does not lose the focus", async ({ serve, chat, page }) => {
    const heddle = await serve();
    await holdNotices(page); // including Undo
    await chat.open(heddle, await conversation(heddle, ["hello"], { title: "Apples" }));
    const tools = page.getByRole("navigation", { name: "Panels" });
    for (const name of ["Branches", "State", "Graph"]) {
        const button = tools.getByRole("button", { name });
        const drawer = page.getByRole("complementary", { name });
        await button.press("Enter");
        await expect(page.getByRole("heading", { name, exact: true })).toBeFocused();
        await page.keyboard.press("Escape");
        await expect(drawer).toBeHidden();
        await expect(button).toBeFocused();
        await button.press("Enter");
        await drawer.getByRole("button", { name: /^Close/ }).press("Enter");
        await expect(button).toBeFocused();
    }
    await page.getByRole("button", { name: "Conversation menu" }).press("Enter");
    await page.getByRole("menuitem", { name: "Delete" }).press("Enter");
    await expect(page.getByRole("main")).toBeFocused();
    await page.getByRole("button", { name: "Undo" }).press("Enter");
    await expect(page.getByRole("heading", { name: "Apples", level: 1 })).toBeVisible();
    await expect(page.getByRole("main")).toBeFocused();
    await page.getByRole("button", { name: "New conversation" }).press("Enter");
    await expect(chat.composer).toBeFocused();
});

test("the shown branch is in view among many", async ({ serve, chat, page }) => {
    const heddle = await serve();
    const thread = await conversation(heddle, ["hello"]);
    const checkpoint = await forkOf(heddle, thread, "hello");
    for (let i = 0; i < 24; i++) await say(heddle, thread, "hello", { checkpoint });
    await chat.open(heddle, thread);
    await openDrawer(page, "Branches");
    const shown = page.getByRole("button", { name: /Shown 25 of 25/ });
    await expect(shown).toBeInViewport();
    await expect(page.getByRole("button", { name: /hello 1 of 25/ })).not.toBeInViewport();
    // At the bottom of the window its menu opens upwards.
    await page.getByRole("button", { name: "Actions for hello" }).last().press("Enter");
    for (const name of ["Rename", "Prune"])
        await expectInside(page, page.getByRole("menuitem", { name }));
});

test("an empty answer has a notice", async ({ serve, chat, page }) => {
    const heddle = await serve({ script: { rules: [{ content: "" }] } });
    await chat.open(heddle);
    await chat.ask("hello", "The answer is empty.");
    await page.reload();
    await expect(chat.message("The answer is empty.")).toHaveCount(1);
});

test("in forced-colors mode messages and selections have a border", async ({
    heddle,
    chat,
    page,
}) => {
    await page.emulateMedia({ forcedColors: "active" });
    const thread = await conversation(heddle, ["hello"]);
    await fork(heddle, thread, "hello");
    await chat.open(heddle, thread);
    await openDrawer(page, "Branches");
    for (const chosen of [
        page.getByRole("button", { name: "Branches", exact: true }),
        page.getByRole("button", { name: /Shown 2 of 2/ }),
    ])
        await expect(chosen).toHaveCSS("outline-style", "solid");
    // The line beside the switcher, and the space around the bubble.
    const ink = await page.evaluate(() => getComputedStyle(document.body).color);
    const bubble = page.locator("[data-bubble]");
    await expect(bubble).toHaveCSS("border-top-style", "solid");
    await expect(bubble).toHaveCSS("border-top-color", ink);
});

test("contrast increases by system setting", async ({ heddle, chat, page }) => {
    await page.emulateMedia({ contrast: "more" });
    const thread = await conversation(heddle, ["hello"], { title: "Contrast" });
    await fork(heddle, thread, "hello");
    await chat.open(heddle, thread);
    await openDrawer(page, "Branches");
    await expect(page.getByRole("button", { name: /Shown 2 of 2/ })).toBeVisible();
    await expect(page.locator("body")).toHaveCSS("color", "rgb(0, 0, 0)");
    await expectNoViolations(page);
});

test.describe("with touch input", () => {
    test.use({ viewport: PHONE, hasTouch: true, isMobile: true });

    test("a tapped element keeps no tooltip, and phones do not zoom in on inputs", async ({
        heddle,
        chat,
        page,
    }) => {
        await chat.open(heddle, await conversation(heddle, ["hello"]));
        await expect(chat.composer).toHaveCSS("font-size", "16px");
        const tools = page.getByRole("navigation", { name: "Panels" });
        await tools.getByRole("button", { name: "State" }).tap();
        const close = page.getByRole("button", { name: "Close state" });
        await close.hover(); // as after a tap
        await expect(close.getByText("Close state")).toBeHidden();
        await close.tap();
        await expect(page.getByRole("complementary", { name: "State" })).toBeHidden();
    });

    test("Enter starts a new line, since the on-screen keyboard has no other key for it", async ({
        heddle,
        chat,
        page,
    }) => {
        await chat.open(heddle);
        await chat.composer.tap();
        await page.keyboard.type("one");
        await page.keyboard.press("Enter");
        await page.keyboard.type("two");
        await expect(chat.composer).toHaveValue("one\ntwo");
        await expect(chat.composer).toHaveAttribute("enterkeyhint", "enter");
        await chat.send.tap();
        await expect(chat.message(/You said: one\s+two/)).toBeVisible();
    });
});
