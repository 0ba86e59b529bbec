// Several agents: selection, messages per agent, and editing agents.
import type { Page } from "@playwright/test";
import {
    assistant,
    conversation,
    expect,
    expectNoViolations,
    shot,
    test,
    type Heddle,
    type Script,
} from "../lib";
import { holdNotices } from "../lib/notices";

const picker = (page: Page) => page.getByRole("button", { name: /^Agent: / });
const agentsList = (page: Page) => page.getByRole("listbox", { name: "Agents" });
const button = (page: Page, name: string) => page.getByRole("button", { name, exact: true });

/** Answers with its prompt and all messages that it received. */
const TELLS: Script = { rules: [{ content: "{{system}} Heard: {{last}}" }] };

async function pair(heddle: Heddle) {
    const ada = await assistant(heddle, "Ada", { system_prompt: "I am Ada." });
    const bob = await assistant(heddle, "Bob the clerk", { system_prompt: "I am Bob." });
    return { ada, bob };
}

/** The user's messages in the model's last request. */
async function heard(heddle: Heddle): Promise<string[]> {
    const requests = await heddle.model.requests();
    const { messages } = requests.at(-1)!.body as { messages: { role: string; content: string }[] };
    return messages.filter((message) => message.role === "user").map((message) => message.content);
}

test("an agent is picked, by mouse and by keyboard, and remembered", async ({
    serve,
    chat,
    page,
}) => {
    const heddle = await serve({ script: TELLS });
    await pair(heddle);
    await chat.open(heddle);
    await expect(picker(page)).toHaveAccessibleName("Agent: agent");
    await picker(page).click();
    await expect(agentsList(page)).toBeFocused();
    await expectNoViolations(page);
    await shot(page, "agents-picker");
    await page.getByRole("option", { name: "Ada" }).click();
    await expect(picker(page)).toHaveAccessibleName("Agent: Ada");
    await expect(picker(page)).toBeFocused();

    await page.keyboard.press("ArrowDown");
    await expect(agentsList(page)).toBeFocused();
    await page.keyboard.press("Escape");
    await expect(picker(page)).toHaveAccessibleName("Agent: Ada");
    await expect(picker(page)).toBeFocused();
    await page.keyboard.press("Enter");
    await expect(agentsList(page)).toBeFocused();
    await page.keyboard.type("bo");
    await page.keyboard.press("Enter");
    await expect(picker(page)).toHaveAccessibleName("Agent: Bob the clerk");
    await chat.ask("hello", "I am Bob.");
    await page.goto("about:blank");
    await chat.open(heddle);
    await expect(picker(page)).toHaveAccessibleName("Agent: Bob the clerk");
});

test("two agents in one thread: each has its name, its colour and its own memory", async ({
    serve,
    chat,
    page,
}) => {
    const heddle = await serve({ script: TELLS });
    const { ada, bob } = await pair(heddle);
    await page.goto(`${heddle.url}/#/?agent=${ada}`);
    await chat.ask("the word is heddle", /I am Ada\..*Heard: the word is heddle/);
    await chat.say("@bob the clerk what was the word?");
    await expect(chat.message(/I am Bob\..*Heard: what was the word\?/)).toBeVisible();
    await chat.idle();
    // The mention is not part of the message, and Bob has not received Ada's messages.
    expect(await heard(heddle)).toEqual(["what was the word?"]);
    await expect(picker(page)).toHaveAccessibleName("Agent: Bob the clerk");
    await chat.ask("@Ada and you?", /I am Ada\..*Heard: and you\?/);
    expect(await heard(heddle)).toEqual(["the word is heddle", "and you?"]);

    const order = async () => {
        await expect(chat.message("Heard: and you?")).toBeVisible();
        await expect(page.getByRole("article", { name: "Ada" })).toHaveCount(2);
        await expect(page.getByRole("article", { name: "Bob the clerk" })).toHaveCount(1);
        const texts = await chat.messages.allInnerTexts();
        const at = (text: string) => texts.findIndex((one) => one.includes(text));
        const places = [
            "the word is heddle",
            "I am Ada.",
            "what was the word?",
            "I am Bob.",
            "and you?",
        ].map(at);
        expect(places).toEqual(places.toSorted((a, b) => a - b));
        expect(places).not.toContain(-1);
    };
    await order();
    await expectNoViolations(page);
    await page.reload();
    await order();
    const colour = (name: string) =>
        page
            .getByRole("article", { name })
            .first()
            .getByText(name, { exact: true })
            .evaluate((node) => getComputedStyle(node).color);
    expect(await colour("Ada")).not.toBe(await colour("Bob the clerk"));
    const agents = await heddle.ask<{ assistant_id: string }[]>(
        "GET",
        `/threads/${await chat.thread()}/agents`,
    );
    expect(agents.map((one) => one.assistant_id)).toEqual([ada, bob]);
});

test("a name is completed while it is typed", async ({ serve, chat, page }) => {
    const heddle = await serve({ script: TELLS });
    await pair(heddle);
    await chat.open(heddle);
    await chat.composer.pressSequentially("@");
    await expect(agentsList(page).getByRole("option")).toHaveCount(5);
    await expectNoViolations(page);
    await chat.composer.pressSequentially("bo");
    await expect(agentsList(page).getByRole("option")).toHaveText([/Bob the clerk/]);
    await page.keyboard.press("Tab");
    await expect(chat.composer).toHaveValue("@Bob the clerk ");
    await expect(chat.composer).toBeFocused();
    await expect(agentsList(page)).toBeHidden();
    await page.keyboard.type("hello");
    await page.keyboard.press("Enter");
    await expect(chat.message(/I am Bob\..*Heard: hello/)).toBeVisible();
    await chat.idle();
    // Escape closes the list and keeps the text; a mention in the middle is text.
    await chat.composer.pressSequentially("@a");
    await page.keyboard.press("Escape");
    await expect(agentsList(page)).toBeHidden();
    await chat.composer.fill("write to a@Ada.com");
    await page.keyboard.press("Enter");
    await expect(chat.message(/I am Bob\..*Heard: write to a@Ada.com/)).toBeVisible();
});

test("an agent is created, tried, changed, and its versions are kept", async ({
    serve,
    chat,
    page,
}) => {
    const heddle = await serve({ script: TELLS });
    await holdNotices(page);
    await page.goto(`${heddle.url}/#/agents`);
    await expect(page.getByRole("list", { name: "Agents" }).getByRole("listitem")).toHaveCount(3);
    await expect(page.getByRole("listitem").filter({ hasText: "research_agent" })).toContainText(
        "system",
    );
    await button(page, "New agent").click();
    await button(page, "Save").click();
    await expect(page.getByText("Enter a name.")).toBeVisible();
    await expect(page.getByLabel("Name", { exact: true })).toBeFocused();
    await page.getByLabel("Name", { exact: true }).fill("Poet");
    await page.getByLabel("Description").fill("Writes in verse.");
    await page.getByLabel("System prompt").fill("I am a poet.");
    await page.getByLabel("Temperature").fill("3");
    await button(page, "Save").click();
    await expect(page.getByText("At most 2.")).toBeVisible();
    await page.getByLabel("Temperature").fill("0.2");
    await button(page, "Add a server").click();
    await page.getByRole("group", { name: "MCP servers" }).getByLabel("Name").fill("files");
    await page
        .getByRole("group", { name: "MCP servers" })
        .getByLabel("URL")
        .fill("http://127.0.0.1:9/mcp");
    await page.getByRole("checkbox", { name: "demo" }).check();
    await page
        .getByLabel("HTTP tools")
        .fill('[{"name": "echo", "description": "Says it again", "url": "http://127.0.0.1:9/"}]');
    await page.getByRole("radio", { name: "By rules" }).check();
    await page.getByLabel("Tool", { exact: true }).fill("echo*");
    await page
        .getByRole("group", { name: "Allowed replies" })
        .getByRole("checkbox", { name: "Edit" })
        .uncheck();
    await expectNoViolations(page);
    await button(page, "Save").click();
    await expect(page.getByText("Agent Poet created.")).toBeVisible();
    await page.waitForURL(/#\/agents\/[\w-]{36}$/);
    const id = page.url().split("/").at(-1)!;
    const made = await heddle.client().assistants.get(id);
    expect(made.name).toBe("Poet");
    const demo = (await heddle.client().assistants.search({ graphId: "demo" }))[0]!.assistant_id;
    const saved = {
        system_prompt: "I am a poet.",
        temperature: 0.2,
        mcp_config: { servers: [{ name: "files", url: "http://127.0.0.1:9/mcp" }] },
        assistants: [demo],
        http_tools: [{ name: "echo", description: "Says it again", url: "http://127.0.0.1:9/" }],
        approval: [{ tool: "echo*", allow: ["accept", "respond", "ignore"] }],
    };
    expect(made.config.configurable).toEqual(saved);

    // Members without a field are kept.
    await heddle.client().assistants.update(id, {
        config: { recursion_limit: 40, configurable: { ...saved, mine: [1] } },
    });
    await page.reload();
    await expect(page.getByLabel("Other settings")).toHaveValue(/"mine"/);
    await page.getByLabel("System prompt").fill("I am a better poet.");
    await expect(page.getByText("Not saved yet")).toBeVisible();
    // Leaving the form loses nothing.
    await page.getByRole("link", { name: /^demo/ }).click();
    await expect(page.getByText("This agent comes with the server.")).toBeVisible();
    await expect(page.getByLabel("Name", { exact: true })).toBeDisabled();
    await page.getByRole("link", { name: /^Poet/ }).click();
    await expect(page.getByLabel("System prompt")).toHaveValue("I am a better poet.");
    await button(page, "Save and try").click();
    await expect(chat.composer).toBeVisible();
    await expect(picker(page)).toHaveAccessibleName("Agent: Poet");
    await chat.ask("hello", /I am a better poet\..*Heard: hello/);
    const changed = await heddle.client().assistants.get(id);
    expect(changed.config.recursion_limit).toBe(40);
    expect(changed.config.configurable).toEqual({
        ...saved,
        mine: [1],
        system_prompt: "I am a better poet.",
    });
    expect(changed.version).toBe(3);

    await page.goto(`${heddle.url}/#/agents/${id}`);
    await page.getByText("Versions (3)").click();
    await button(page, "Use version 1").click();
    await expect(page.getByLabel("System prompt")).toHaveValue("I am a poet.");
});

test("an agent is duplicated and deleted, and an error is shown", async ({
    serve,
    page,
    watch,
}) => {
    watch.allow(/422/);
    const heddle = await serve({ script: TELLS });
    await assistant(heddle, "Ada", { system_prompt: "I am Ada." });
    await page.goto(`${heddle.url}/#/agents`);
    await button(page, "Actions for Ada").click();
    await page.getByRole("menuitem", { name: "Duplicate" }).click();
    await expect(page.getByLabel("Name", { exact: true })).toHaveValue("Copy of Ada");
    await page.getByText("More settings").click();
    await page.getByLabel("Other settings").fill('{"custom_api_key": "sk-1234567890"}');
    await button(page, "Save").click();
    await expect(page.getByRole("alert").filter({ hasText: "keys are not stored" })).toBeVisible();
    await page.getByLabel("Other settings").fill("");
    await button(page, "Save").click();
    await expect(page.getByRole("link", { name: /^Copy of Ada/ })).toBeVisible();
    const all = await heddle.client().assistants.search({ graphId: "agent" });
    expect(all.map((one) => one.config.configurable?.system_prompt).filter(Boolean)).toEqual([
        "I am Ada.",
        "I am Ada.",
    ]);
    await button(page, "Delete").click();
    const dialog = page.getByRole("dialog", { name: "Delete Copy of Ada?" });
    await dialog.getByRole("button", { name: "Cancel" }).click();
    await expect(dialog).toBeHidden();
    await button(page, "Delete").click();
    await expect(dialog).toBeVisible();
    await expectNoViolations(page);
    await dialog.getByRole("button", { name: "Delete" }).click();
    await expect(page.getByRole("link", { name: /^Copy of Ada/ })).toBeHidden();
    await expect(page.getByRole("link", { name: /^Ada/ })).toBeVisible();
});

test("the messages of a deleted agent stay, and another agent continues", async ({
    serve,
    chat,
}) => {
    const heddle = await serve({ script: TELLS });
    const { ada } = await pair(heddle);
    const thread = await conversation(heddle, ["hello"], { assistant: ada });
    await heddle.client().assistants.delete(ada);
    await chat.open(heddle, thread);
    await expect(chat.message("I am Ada.")).toContainText("deleted agent");
    await chat.say("@Bob the clerk and you?");
    await expect(chat.message("I am Bob.")).toContainText("Bob the clerk");
});

test("closing a tab with unsaved changes asks for confirmation", async ({ serve, page }) => {
    const heddle = await serve();
    await page.goto(`${heddle.url}/#/agents/new`);
    await page.getByLabel("Name", { exact: true }).click();
    // a browser confirms only after the user has interacted with the page
    await page.keyboard.type("Nearly");
    await expect(page.getByText("Not saved yet")).toBeVisible();
    const asked = page.waitForEvent("dialog");
    const closing = page.close({ runBeforeUnload: true });
    const dialog = await asked;
    expect(dialog.type()).toBe("beforeunload");
    await dialog.dismiss();
    await closing;
    await expect(page.getByLabel("Name", { exact: true })).toHaveValue("Nearly");
    await button(page, "Discard changes").click();
    await expect(page.getByLabel("Name", { exact: true })).toHaveValue("");
});

test("on a phone", async ({ serve, page }) => {
    await page.setViewportSize({ width: 390, height: 800 });
    const heddle = await serve();
    await assistant(heddle, "Ada", { system_prompt: "I am Ada." });
    await page.goto(`${heddle.url}/#/agents`);
    await page.getByRole("link", { name: /^Ada/ }).click();
    await expect(page.getByLabel("System prompt")).toBeVisible();
    await expect(page.getByRole("list", { name: "Agents" })).toBeHidden();
    const width = await page.evaluate(() => document.documentElement.scrollWidth);
    expect(width).toBeLessThanOrEqual(390);
    await expectNoViolations(page);
    await shot(page, "agents-phone");
    await button(page, "All agents").click();
    await expect(page.getByRole("list", { name: "Agents" })).toBeVisible();
});
