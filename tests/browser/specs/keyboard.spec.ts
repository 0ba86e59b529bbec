// A whole conversation without a mouse, with a visible focus at every step.
import { assistant, conversation, expect, test } from "../lib";
import { press, tabTo } from "../lib/keyboard";
import { holdNotices } from "../lib/notices";

const SCRIPT = {
    rules: [
        {
            when: { user: "weather", tool: "weather", tool_results: false },
            tool_calls: [{ name: "weather", args: { city: "Bern" } }],
        },
        { when: { tool_results: true }, content: "The tool said: {{results}}" },
        { content: "answer {{call}} to {{user}}" },
    ],
};

test("new conversation, send, retry, edit, switch, tree", async ({ serve, chat, page }) => {
    const heddle = await serve({ script: SCRIPT });
    await chat.open(heddle);

    // The first tab stop skips the list.
    await page.keyboard.press("Tab");
    await expect(page.getByRole("link", { name: "Skip to the conversation" })).toBeFocused();
    await page.keyboard.press("Enter");
    await tabTo(page, chat.composer);
    await page.keyboard.type("hello");
    await expect(chat.send).toBeEnabled(); // the agent is selected
    await page.keyboard.press("Enter");
    await expect(chat.message("answer 1 to hello")).toBeVisible();
    await chat.idle();

    const retry = page.getByRole("button", { name: "Retry", exact: true });
    await press(page, retry, "Shift+Tab");
    await expect(chat.message("answer 2 to hello")).toBeVisible();
    await chat.idle();
    await expect(page.getByRole("group", { name: "Branch 2 of 2" })).toBeVisible();

    await press(page, page.getByRole("button", { name: "Edit", exact: true }), "Shift+Tab");
    await expect(page.getByRole("textbox", { name: "Edited message" })).toBeFocused();
    await page.keyboard.press("ControlOrMeta+A");
    await page.keyboard.type("goodbye");
    await press(page, page.getByRole("button", { name: "Send again" }));
    await expect(chat.message("answer 3 to goodbye")).toBeVisible();
    await chat.idle();
    await expect(page.getByRole("group", { name: "Branch 3 of 3" })).toBeVisible();

    // Switching keeps the focus, so that the key can be pressed again.
    await tabTo(page, page.getByRole("button", { name: "Previous branch" }), "Shift+Tab");
    await page.keyboard.press("Enter");
    await expect(chat.message("answer 2 to hello")).toBeVisible();
    await expect(page.getByRole("button", { name: "Previous branch" })).toBeFocused();
    await page.keyboard.press("Enter");
    await expect(chat.message("answer 1 to hello")).toBeVisible();

    const drawer = page.getByRole("complementary", { name: "Branches" });
    await press(page, page.getByRole("button", { name: "Branches", exact: true }), "Shift+Tab");
    await expect(drawer).toBeVisible();
    await expect(drawer).toContainText("goodbye");
    await tabTo(page, drawer.getByRole("button", { name: "Close" }));
    await page.keyboard.press("Escape");
    await expect(drawer).toBeHidden();
});

test("a request is answered", async ({ serve, chat, page, weather }) => {
    const heddle = await serve({ script: SCRIPT });
    const desk = await assistant(heddle, "Desk", {
        http_tools: [weather.tool],
        approval: ["weather"],
    });
    const thread = await conversation(heddle, ["weather"], { title: "Weather", assistant: desk });
    await chat.open(heddle, thread);
    await press(page, page.getByRole("button", { name: "Accept", exact: true }));
    await expect(chat.message("The tool said: sunny in Bern")).toBeVisible();
    expect(weather.cities).toEqual(["Bern"]);
});

test("a conversation is found, opened, deleted, and restored", async ({ serve, chat, page }) => {
    const heddle = await serve({ script: SCRIPT });
    await conversation(heddle, ["one"], { title: "Apples" });
    await conversation(heddle, ["two"], { title: "Pears" });
    await holdNotices(page);
    await chat.open(heddle);
    const side = page.getByRole("navigation", { name: "Conversations" });
    await tabTo(page, side.getByLabel("Search conversations"));
    await page.keyboard.type("apple");
    await expect(side.getByRole("link", { name: /Pears/ })).toBeHidden();
    await press(page, side.getByRole("link", { name: /Apples/ }));
    await expect(chat.message("answer 1 to one")).toBeVisible();

    await press(page, page.getByRole("button", { name: "Conversation menu" }));
    await expect(page.getByRole("menuitem").first()).toBeFocused();
    await page.keyboard.press("End");
    await expect(page.getByRole("menuitem", { name: "Delete" })).toBeFocused();
    await page.keyboard.press("Enter");
    await expect(side.getByRole("link", { name: /Apples/ })).toBeHidden();
    await press(page, page.getByRole("button", { name: "Undo" }));
    await expect(side.getByRole("link", { name: /Apples/ })).toBeVisible();
    const left = await heddle.client().threads.search({ limit: 10 });
    expect(left.map(({ metadata }) => metadata?.title).sort()).toEqual(["Apples", "Pears"]);

    await press(page, side.getByRole("button", { name: "New conversation" }));
    await expect(page).toHaveURL(/#\/$/);
    await expect(chat.messages).toHaveCount(0);
});
