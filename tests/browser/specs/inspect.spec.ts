// The state inspector: the stored state at the shown checkpoint, its changes, and its history.
import type { Page } from "@playwright/test";
import { conversation, expect, expectNoViolations, say, test } from "../lib";

const panel = (page: Page) => page.getByRole("complementary", { name: "State" });
const fact = (page: Page, name: string) =>
    panel(page).locator("dt", { hasText: name }).locator("xpath=following-sibling::dd[1]");

async function inspect(page: Page, url: string, thread: string) {
    await page.goto(`${url}/#/t/${thread}`);
    await page.getByRole("button", { name: "State", exact: true }).click();
    await expect(fact(page, "Checkpoint").locator("code")).toHaveText(/^[0-9a-f-]{36}$/);
}

test("the state at the end, and the changes of the last step", async ({
    heddle,
    page,
    context,
}) => {
    await context.grantPermissions(["clipboard-read", "clipboard-write"]);
    const thread = await conversation(heddle, ["first", "second"], { title: "Inspected" });
    const state = await heddle.client().threads.getState(thread);
    await inspect(page, heddle.url, thread);
    const id = state.checkpoint.checkpoint_id ?? "";
    await expect(fact(page, "Checkpoint")).toContainText(id);
    await expect(fact(page, "Step")).toHaveText(`${String(state.metadata?.step)}, by loop`);
    await expect(fact(page, "Next")).toHaveText("none (finished)");
    await page.getByRole("button", { name: "Copy the checkpoint ID" }).click();
    await expect.poll(() => page.evaluate(() => navigator.clipboard.readText())).toBe(id);

    await expect(panel(page).getByText("added: messages › 3")).toBeVisible();
    await panel(page).getByText("message", { exact: true }).click();
    await expect(panel(page).getByText("“You said: second”")).toBeVisible();

    // Values open by keyboard.
    await panel(page).locator("summary", { hasText: "4 elements" }).focus();
    await page.keyboard.press("Enter");
    await expect(panel(page).getByText("human: first")).toBeVisible();
    await page.getByRole("button", { name: "Copy messages" }).click();
    await expect
        .poll(() => page.evaluate(() => navigator.clipboard.readText()))
        .toContain('"content": "You said: second"');
    await panel(page).getByRole("heading", { name: "Metadata" }).click();
    await expect(panel(page).getByText("“loop”")).toBeVisible();
    await expectNoViolations(page);
});

test("the history leads to earlier checkpoints and back to the latest", async ({
    heddle,
    page,
}) => {
    const thread = await conversation(heddle, ["first", "second"], { title: "Inspected" });
    await inspect(page, heddle.url, thread);
    const history = panel(page).getByRole("button", { name: /^Show / });
    await expect(history).toHaveCount(6);
    await expect(history.first()).toHaveAttribute("aria-current", "true");
    await history.nth(1).press("Enter"); // before the second answer
    await expect(fact(page, "Next")).toHaveText("model");
    await expect(panel(page).getByText("Tasks")).toBeVisible();
    await expect(page.getByRole("article").filter({ hasText: "You said: second" })).toBeHidden();
    await expect(history.nth(1)).toHaveAttribute("aria-current", "true");
    await expect(history).toHaveCount(6);
    await panel(page).getByRole("button", { name: "Back to the latest" }).click();
    await expect(page.getByRole("article").filter({ hasText: "You said: second" })).toBeVisible();
    await expect(history.first()).toHaveAttribute("aria-current", "true");
});

test("the parent is one step away, and the state is available as JSON", async ({
    heddle,
    page,
    context,
}) => {
    await context.grantPermissions(["clipboard-read", "clipboard-write"]);
    const thread = await conversation(heddle, ["first"], { title: "Inspected" });
    const state = await heddle.client().threads.getState(thread);
    const parent = state.parent_checkpoint?.checkpoint_id ?? "";
    await inspect(page, heddle.url, thread);
    await panel(page).getByRole("heading", { name: "JSON" }).click();
    await page.getByRole("button", { name: "Copy checkpoint", exact: true }).click();
    const copied = () => page.evaluate(() => navigator.clipboard.readText());
    await expect.poll(copied).toContain(parent);
    expect(JSON.parse(await copied())).toEqual(state);

    await panel(page)
        .getByRole("button", { name: `Go to the parent ${parent}` })
        .click();
    await expect(fact(page, "Checkpoint")).toContainText(parent);
    const first = panel(page).getByRole("button", { name: /^Show -1/ });
    await first.click();
    await expect(fact(page, "Parent")).toHaveText("none (first checkpoint)");
    await expectNoViolations(page);
});

test("a long history is loaded in pages", async ({ heddle, page }) => {
    const texts = Array.from({ length: 8 }, (_, at) => `number ${at}`);
    const thread = await conversation(heddle, texts, { title: "Long" });
    await inspect(page, heddle.url, thread);
    const history = panel(page).getByRole("button", { name: /^Show / });
    await expect(history).toHaveCount(21); // with the button for more
    await panel(page).getByRole("button", { name: "Show earlier checkpoints" }).click();
    await expect(history).toHaveCount(24);
    await expect(
        panel(page).getByRole("button", { name: "Show earlier checkpoints" }),
    ).toBeHidden();
});

test("each agent has its own state", async ({ heddle, page }) => {
    const thread = await conversation(heddle, ["to the agent"], { title: "Two" });
    await say(heddle, thread, "to the demo", { assistant: "demo" });
    await inspect(page, heddle.url, thread);
    const agent = panel(page).getByLabel("Agent");
    await agent.selectOption("agent");
    await expect(panel(page).getByText("added: messages › 1")).toBeVisible();
    await panel(page).locator("summary", { hasText: "2 elements" }).click();
    await expect(panel(page).getByText("human: to the agent")).toBeVisible();
    await agent.selectOption("demo");
    await panel(page).locator("summary", { hasText: "2 elements" }).click();
    await expect(panel(page).getByText("human: to the demo")).toBeVisible();
});

test("errors and interrupts are shown with their task", async ({ serve, page, weather }) => {
    const script = {
        rules: [
            { when: { contains: "break" }, error: { status: 400 } },
            {
                when: { contains: "weather" },
                tool_calls: [{ name: "weather", args: { city: "Rome" } }],
            },
        ],
    };
    const heddle = await serve({ script });
    const client = heddle.client();
    const input = (content: string) => ({ input: { messages: [{ type: "human", content }] } });
    const broken = await client.threads.create({ metadata: { title: "Broken" } });
    await client.runs.wait(broken.thread_id, "agent", { ...input("break"), raiseError: false });
    await inspect(page, heddle.url, broken.thread_id);
    await expect(fact(page, "Next")).not.toHaveText("none (finished)");
    await expect(panel(page).getByText(/400/)).toBeVisible();

    const asking = await client.threads.create({ metadata: { title: "Asking" } });
    const config = { configurable: { http_tools: [weather.tool], approval: ["weather"] } };
    await client.runs.wait(asking.thread_id, "agent", { ...input("weather"), config });
    await page.goto(`${heddle.url}/#/t/${asking.thread_id}`);
    await expect(panel(page).locator("summary", { hasText: "interrupt" }).first()).toBeVisible();
});

test("a state of a megabyte is rendered on demand", async ({ heddle, page }) => {
    const client = heddle.client();
    const { thread_id: thread } = await client.threads.create({ metadata: { title: "Heavy" } });
    const long = "x".repeat(600_000);
    const many = Array.from({ length: 400 }, (_, at) => ({
        id: `m${at}`,
        type: "human",
        content: `${at} ${"y".repeat(1000)}`,
    }));
    await client.runs.wait(thread, "agent", {
        input: { messages: [...many, { id: "long", type: "human", content: long }] },
    });
    await inspect(page, heddle.url, thread);
    await panel(page).locator("summary", { hasText: "402 elements" }).click();
    await expect(panel(page).getByText(/^human: 0 y+/)).toBeVisible();
    await expect(panel(page).getByText(/^human: 60 y+/)).toHaveCount(0);
    await panel(page).getByRole("button", { name: "50 of 352 more" }).click();
    await expect(panel(page).getByText(/^human: 60 y+/)).toBeVisible();
    // Collapsed values are not rendered.
    expect(await panel(page).locator("*").count()).toBeLessThan(2000);
});

test("nothing is stored before the first message", async ({ heddle, chat, page }) => {
    await chat.open(heddle);
    await page.getByRole("button", { name: "State", exact: true }).click();
    await expect(panel(page).getByText("No state is stored yet.")).toBeVisible();
    await chat.ask("now", "You said: now");
    await expect(panel(page).getByText("added: messages › 1")).toBeVisible();
});
