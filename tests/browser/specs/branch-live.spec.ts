// Branches while answers stream, over reloads, in other tabs, in long conversations and beside
// other agents.
import { assistant, conversation, expect, fork, human, say, test, type Heddle } from "../lib";
import { startHeldModel, type HeldModel } from "../lib/held";
import { holdNotices } from "../lib/notices";
import { chatOf } from "../lib/chat";
import { COUNTS, runsOf, turnsOf } from "../lib/turns";

const NOTICE = "An answer is being written on another branch.";

/** A conversation of one turn, whose model then waits for the test. */
async function heldConversation(heddle: Heddle, held: HeldModel) {
    const client = heddle.client();
    const { thread_id: thread } = await client.threads.create();
    const done = client.runs.wait(thread, "agent", { input: human("hello") });
    await held.asked(1);
    held.say(1, "First answer");
    held.end(1);
    await done;
    return thread;
}

test.describe("during an answer", () => {
    let held: HeldModel;
    let heddle: Heddle;

    test.beforeEach(async ({ serve }) => {
        held = await startHeldModel();
        heddle = await serve({ env: { OPENAI_BASE_URL: held.baseUrl } });
    });
    test.afterEach(async () => {
        await held.close();
    });

    test("showing another branch loses nothing", async ({ chat, page }) => {
        const { count, previous, next, retry } = turnsOf(page);
        await chat.open(heddle, await heldConversation(heddle, held));
        await expect(chat.message("First answer")).toBeVisible();
        await retry("hello");
        await held.asked(2);
        held.say(2, "Second begins");
        await expect(chat.message("Second begins")).toBeVisible();
        await expect(count("hello")).toHaveAccessibleName("Branch 2 of 2");

        await previous("hello").click();
        await expect(chat.message("First answer")).toBeVisible();
        await expect(page.getByText(NOTICE)).toBeVisible();
        await expect(chat.message("Second begins")).toHaveCount(0);
        await expect(count("hello")).toHaveAccessibleName("Branch 1 of 2");
        held.say(2, ", goes on");

        await next("hello").click();
        await expect(chat.message("Second begins, goes on")).toBeVisible();
        await expect(page.getByText(NOTICE)).toHaveCount(0);
        await previous("hello").click();
        await expect(chat.message("First answer")).toBeVisible();
        held.say(2, ", and ends.");
        await page.getByRole("button", { name: "Show it" }).click();
        await expect(chat.message("Second begins, goes on, and ends.")).toBeVisible();
        held.end(2);
        await chat.idle();
        await expect(chat.message("Second begins, goes on, and ends.")).toBeVisible();
        await expect(count("hello")).toHaveAccessibleName("Branch 2 of 2");
        await expect(chat.messages).toHaveCount(2);
    });

    test("it may end while another branch is shown", async ({ chat, page }) => {
        const { count, previous, next, retry } = turnsOf(page);
        await chat.open(heddle, await heldConversation(heddle, held));
        await retry("hello");
        await held.asked(2);
        held.say(2, "Second answer");
        await expect(chat.message("Second answer")).toBeVisible();
        await previous("hello").click();
        await expect(page.getByText(NOTICE)).toBeVisible();
        held.end(2);
        await expect(page.getByText(NOTICE)).toHaveCount(0);
        await expect(chat.message("First answer")).toBeVisible();
        await next("hello").click();
        await expect(chat.message("Second answer")).toBeVisible();
        await expect(count("hello")).toHaveAccessibleName("Branch 2 of 2");
        await expect(page).not.toHaveURL(/at=/);
    });

    test("a reload keeps the shown branch and finds the answer", async ({ chat, page }) => {
        const { previous, retry, count } = turnsOf(page);
        await chat.open(heddle, await heldConversation(heddle, held));
        await retry("hello");
        await held.asked(2);
        held.say(2, "Second begins");
        await expect(chat.message("Second begins")).toBeVisible();
        await previous("hello").click();
        await expect(chat.message("First answer")).toBeVisible();
        await expect(page).toHaveURL(/at=/);
        await page.reload();
        await expect(chat.message("First answer")).toBeVisible();
        await expect(page.getByText(NOTICE)).toBeVisible();
        await expect(count("hello")).toHaveAccessibleName("Branch 1 of 2");
        held.say(2, " and ends.");
        await page.getByRole("button", { name: "Show it" }).click();
        await expect(chat.message("Second begins and ends.")).toBeVisible();
        held.end(2);
        await chat.idle();
        await expect(chat.message("Second begins and ends.")).toBeVisible();
    });

    test("retry and edit are disabled", async ({ chat, page }) => {
        const { turn, retry } = turnsOf(page);
        await chat.open(heddle, await heldConversation(heddle, held));
        await retry("hello");
        await held.asked(2);
        held.say(2, "Second");
        await expect(chat.message("Second")).toBeVisible();
        await expect(turn("hello").getByRole("button", { name: "Retry" })).toBeDisabled();
        await expect(turn("hello").getByRole("button", { name: "Edit" })).toBeDisabled();
        held.end(2);
        await chat.idle();
        await expect(turn("hello").getByRole("button", { name: "Retry" })).toBeEnabled();
        expect(held.calls).toBe(2);
    });
});

test("the URL, a reload and the browser's back button keep the branch", async ({
    serve,
    chat,
    page,
}) => {
    const heddle = await serve({ script: COUNTS });
    const { count, previous, retry } = turnsOf(page);
    await chat.open(heddle, await conversation(heddle, ["one"]));
    await retry("one");
    await expect(chat.message("Answer 2 to one")).toBeVisible();
    await chat.idle();
    await expect(page).not.toHaveURL(/at=/);

    await page.goBack(); // the version before the retry
    await expect(chat.message("Answer 1 to one")).toBeVisible();
    await page.goForward();
    await expect(chat.message("Answer 2 to one")).toBeVisible();
    await previous("one").click();
    await expect(chat.message("Answer 1 to one")).toBeVisible();
    await expect(page).toHaveURL(/at=/);
    await page.reload();
    await expect(chat.message("Answer 1 to one")).toBeVisible();
    await expect(count("one")).toHaveAccessibleName("Branch 1 of 2");
    await page.goBack();
    await expect(chat.message("Answer 2 to one")).toBeVisible();
    await expect(count("one")).toHaveAccessibleName("Branch 2 of 2");
});

test("a branch that no longer exists is replaced by the latest", async ({
    serve,
    chat,
    page,
    watch,
}) => {
    watch.allow(/404/);
    const heddle = await serve({ script: COUNTS });
    const thread = await conversation(heddle, ["one"]);
    await holdNotices(page);
    await page.goto(`${heddle.url}/#/t/${thread}?at=1f0f0f0f-0000-6000-8000-000000000000`);
    await expect(page.getByText("That branch no longer exists.")).toBeVisible();
    await expect(chat.message("Answer 1 to one")).toBeVisible();
    await expect(page).not.toHaveURL(/at=/);
});

test("a conversation can be longer than any history page", async ({ serve, chat, page }) => {
    const heddle = await serve({ script: COUNTS, release: true });
    const texts = Array.from({ length: 110 }, (_, i) => `number ${i + 1}.`);
    const thread = await conversation(heddle, texts);
    const { count, previous, next, retry } = turnsOf(page);
    await chat.open(heddle, thread);
    await expect(chat.message("Answer 110 to number 110.")).toBeVisible();
    const usage = await heddle.ask<{ checkpoints: number }[]>("GET", `/threads/${thread}/agents`);
    expect(usage[0]?.checkpoints).toBeGreaterThan(300);
    await fork(heddle, thread, "number 110.");
    await expect(count("number 110.")).toHaveAccessibleName("Branch 2 of 2");
    await retry("number 2.");
    await expect(chat.message("Answer 112 to number 2.")).toBeVisible();
    await expect(count("number 2.")).toHaveAccessibleName("Branch 2 of 2");
    await expect(chat.messages).toHaveCount(4);
    await chat.idle();
    await previous("number 2.").click();
    await expect(chat.message("Answer 111 to number 110.")).toBeVisible();
    await expect(chat.messages).toHaveCount(220);
    await next("number 2.").click();
    await expect(chat.messages).toHaveCount(4);
});

test("two tabs share branches", async ({ serve, chat, page, context }) => {
    const heddle = await serve({ script: COUNTS });
    const thread = await conversation(heddle, ["one"]);
    const other = await context.newPage();
    const otherRoom = chatOf(other);
    const mine = turnsOf(page);
    const theirs = turnsOf(other);
    await chat.open(heddle, thread);
    await otherRoom.open(heddle, thread);
    await expect(otherRoom.message("Answer 1 to one")).toBeVisible();

    await page.bringToFront();
    await mine.retry("one");
    await expect(chat.message("Answer 2 to one")).toBeVisible();
    await other.bringToFront();
    await expect(otherRoom.message("Answer 2 to one")).toBeVisible();
    await expect(theirs.count("one")).toHaveAccessibleName("Branch 2 of 2");

    // A selected branch stays; the page announces the new one.
    await theirs.previous("one").click();
    await expect(otherRoom.message("Answer 1 to one")).toBeVisible();
    await page.bringToFront();
    await chat.idle();
    await mine.retry("one");
    await expect(chat.message("Answer 3 to one")).toBeVisible();
    await other.bringToFront();
    await expect(theirs.count("one")).toHaveAccessibleName("Branch 1 of 3");
    await expect(otherRoom.message("Answer 1 to one")).toBeVisible();
});

test("each agent has its own branches", async ({ serve, chat, page }) => {
    const heddle = await serve({ script: COUNTS });
    const ann = await assistant(heddle, "Ann");
    const bob = await assistant(heddle, "Bob");
    const thread = await conversation(heddle, ["to Ann"], { assistant: ann });
    await say(heddle, thread, "to Bob", { assistant: bob });
    const { count, previous, retry } = turnsOf(page);
    const sent = runsOf(page);
    await chat.open(heddle, thread);
    await expect(chat.message("Answer 2 to to Bob")).toBeVisible();

    await retry("to Ann");
    await expect(chat.message("Answer 3 to to Ann")).toBeVisible();
    await expect(count("to Bob")).toHaveCount(0);
    await chat.idle();
    await retry("to Bob");
    await expect(chat.message("Answer 4 to to Bob")).toBeVisible();
    await chat.idle();
    expect(sent.map((run) => run.assistant_id)).toEqual([ann, bob]);

    await previous("to Ann").click();
    await expect(chat.message("Answer 1 to to Ann")).toBeVisible();
    await expect(count("to Bob")).toHaveAccessibleName("Branch 2 of 2");
    await previous("to Bob").click();
    await expect(chat.message("Answer 2 to to Bob")).toBeVisible();
    await expect(chat.message("Answer 1 to to Ann")).toBeVisible();
    await page.reload();
    await expect(count("to Ann")).toHaveAccessibleName("Branch 1 of 2");
    await expect(count("to Bob")).toHaveAccessibleName("Branch 1 of 2");
    await expect(chat.message("Answer 1 to to Ann")).toBeVisible();
    await expect(chat.message("Answer 2 to to Bob")).toBeVisible();
});
