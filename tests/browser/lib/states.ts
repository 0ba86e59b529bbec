// The states of the page: each opens one and waits until it is complete, and may return a cleanup.
// axe checks all of them; the screenshots of the documentation show some.
import { expect, type Page } from "@playwright/test";
import { chatOf } from "./chat";
import type { Scenes } from "./scenes";
import { FAILED_REQUEST, type Watch } from "./watch";

export type Stage = { page: Page; scenes: Scenes; watch: Watch };
export type State = (stage: Stage) => Promise<void | (() => Promise<void>)>;

const isNarrow = (page: Page) => (page.viewportSize()?.width ?? 1280) < 700;

export async function openDrawer(page: Page, name: "Branches" | "State" | "Graph") {
    await page.getByRole("navigation", { name: "Panels" }).getByRole("button", { name }).click();
    await expect(page.getByRole("complementary", { name })).toBeVisible();
    await page.mouse.move(1, 1); // without its tooltip
}

/** On a phone the list of conversations is behind a button. */
async function showSide(page: Page) {
    const side = page.getByRole("navigation", { name: "Conversations" });
    if (isNarrow(page)) await page.getByRole("button", { name: "Conversations" }).click();
    await expect(side.getByRole("button", { name: "New conversation" })).toBeVisible();
}

export const states = {
    async welcome({ page, scenes }) {
        await chatOf(page).open(scenes.heddle);
        await expect(page.getByText("You are talking to")).toBeVisible();
    },
    async conversation({ page, scenes }) {
        const chat = chatOf(page);
        await chat.open(scenes.heddle, scenes.talk);
        await expect(page.getByRole("table")).toBeVisible();
        await expect(page.getByText("timedelta(days=1)")).toBeVisible();
    },
    async branches({ page, scenes }) {
        const chat = chatOf(page);
        await chat.open(scenes.heddle, scenes.branches);
        await expect(page.getByText("3 / 3")).toBeVisible();
        await openDrawer(page, "Branches");
        await expect(page.getByRole("complementary", { name: "Branches" })).toContainText("Guide");
        if (!isNarrow(page)) await chat.message("without a train").first().hover(); // its controls
    },
    async approval({ page, scenes }) {
        await chatOf(page).open(scenes.heddle, scenes.asks);
        await expect(page.getByRole("button", { name: /^(Accept|Approve)/ })).toBeVisible();
    },
    async team({ page, scenes }) {
        await chatOf(page).open(scenes.heddle, scenes.team);
        await expect(page.getByRole("article", { name: /Guide/ }).first()).toBeVisible();
        await expect(page.getByRole("article", { name: /Weather desk/ }).first()).toBeVisible();
    },
    async failure({ page, scenes }) {
        await chatOf(page).open(scenes.heddle, scenes.failed);
        await expect(
            page.getByText("The model has no chat for so long a text.").first(),
        ).toBeVisible();
    },
    async graph({ page, scenes }) {
        const chat = chatOf(page);
        await chat.open(scenes.heddle);
        await page.goto(`${scenes.heddle.url}/#/?agent=${scenes.guide}`);
        await expect(page.getByRole("button", { name: "Agent: Guide" })).toBeVisible();
        await openDrawer(page, "Graph");
        const drawing = page.getByRole("complementary", { name: "Graph" });
        await expect(drawing.locator("svg [data-node='model']")).toBeVisible();
        // On a phone the drawer covers the conversation: write the message before opening it.
        if (isNarrow(page)) await page.keyboard.press("Escape");
        await chat.say("Tell me slowly about the river");
        await expect(chat.stop).toBeVisible();
        await page.mouse.move(1, 1);
        if (isNarrow(page)) await openDrawer(page, "Graph");
        else await expect(chat.message("The river makes a loop").last()).toBeVisible();
    },
    async state({ page, scenes }) {
        await chatOf(page).open(scenes.heddle, scenes.talk);
        await openDrawer(page, "State");
        await expect(page.getByRole("complementary", { name: "State" })).toContainText("messages");
    },
    async agents({ page, scenes }) {
        await page.goto(`${scenes.heddle.url}/#/agents`);
        await expect(
            page
                .getByRole("link", { name: /Weather desk/ })
                .or(page.getByRole("button", { name: /Weather desk/ }))
                .first(),
        ).toBeVisible();
    },
    async editor({ page, scenes }) {
        await page.goto(`${scenes.heddle.url}/#/agents/${scenes.guide}`);
        await expect(page.getByRole("textbox", { name: /prompt/i })).toHaveValue(/You plan trips/);
    },
    async list({ page, scenes }) {
        await chatOf(page).open(scenes.heddle, scenes.talk);
        await showSide(page);
        await expect(page.getByText("A weekend in Bern").first()).toBeVisible();
    },
    async details({ page, scenes }) {
        await chatOf(page).open(scenes.heddle, scenes.talk);
        await page.getByRole("button", { name: "Conversation menu" }).click();
        await page.getByRole("menuitem", { name: "Details and sharing" }).click();
        await expect(page.getByRole("dialog")).toBeVisible();
        await expect(page.getByRole("dialog")).toContainText(/\d (KB|bytes|B)/);
    },
    async picker({ page, scenes }) {
        await chatOf(page).open(scenes.heddle, scenes.talk);
        await page
            .getByRole("button", { name: /^Agent: / })
            .or(page.getByRole("combobox", { name: /^Agent: / }))
            .click();
        await expect(page.getByRole("option", { name: /Weather desk/ })).toBeVisible();
    },
    async editing({ page, scenes }) {
        const chat = chatOf(page);
        await chat.open(scenes.heddle, scenes.branches);
        await chat.message("without a train").first().hover();
        await page.getByRole("button", { name: "Edit", exact: true }).first().click();
        await expect(page.getByRole("textbox", { name: "Edited message" })).toBeVisible();
    },
    async offline({ page, scenes, watch }) {
        watch.allow(FAILED_REQUEST);
        await chatOf(page).open(scenes.heddle, scenes.talk);
        await expect(page.getByRole("table")).toBeVisible();
        await scenes.heddle.kill();
        // Simulates a return from another tab.
        await page.evaluate(() => document.dispatchEvent(new Event("visibilitychange")));
        await expect(page.getByText("The server can't be reached. Reconnecting…")).toBeVisible();
        return () => scenes.heddle.start();
    },
    async nowhere({ page, scenes, watch }) {
        watch.allow(FAILED_REQUEST);
        await page.goto(`${scenes.heddle.url}/#/t/00000000-0000-4000-8000-000000000000`);
        await expect(page.getByText(/does not exist|isn't here|not found/i).first()).toBeVisible();
    },
} satisfies Record<string, State>;

export type StateName = keyof typeof states;
