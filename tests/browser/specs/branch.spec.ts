// Edit, retry and the switcher: display, and requests to the server.
import { conversation, expect, expectNoViolations, fork, human, test } from "../lib";
import { COUNTS, runsOf, turnsOf } from "../lib/turns";

const IMAGE =
    "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";

test("the first message: retried three times and edited", async ({ serve, chat, page }) => {
    const heddle = await serve({ script: COUNTS });
    const { turn, count, retry, edit } = turnsOf(page);
    const sent = runsOf(page);
    await chat.open(heddle);
    await chat.ask("hello", "Answer 1 to hello");
    await expect(count("hello")).toHaveCount(0);

    await retry("hello");
    await expect(chat.message("Answer 2 to hello")).toBeVisible();
    await expect(count("hello")).toHaveAccessibleName("Branch 2 of 2");
    await expect(turn("hello")).toContainText("2 / 2");
    await expect(chat.message("Answer 1 to hello")).toHaveCount(0);
    await expect(turn("hello")).toContainText("The earlier version is kept as 1 of 2.");
    for (const number of [3, 4]) {
        await chat.idle();
        await retry("hello");
        await expect(chat.message(`Answer ${number} to hello`)).toBeVisible();
    }
    await chat.idle();
    await expect(count("hello")).toHaveAccessibleName("Branch 4 of 4");

    await edit("hello", "goodbye");
    await expect(chat.message("Answer 5 to goodbye")).toBeVisible();
    await chat.idle();
    await expect(count("goodbye")).toHaveAccessibleName("Branch 5 of 5");
    await expect(chat.messages).toHaveCount(2);

    const ids = sent.flatMap(({ input }) => input.messages.map(({ id }) => id));
    expect(new Set(ids).size).toBe(5);
    expect(sent[0]?.checkpoint).toBeUndefined();
    const [first, ...more] = sent.slice(1).map(({ checkpoint }) => checkpoint?.checkpoint_id);
    expect(first).toBeTruthy();
    expect(more).toEqual([first, first, first]);
});

test("nested forks: each switcher counts its own", async ({ serve, chat, page }) => {
    const heddle = await serve({ script: COUNTS });
    const thread = await conversation(heddle, ["one", "two"]);
    const { count, previous, retry, edit } = turnsOf(page);
    const sent = runsOf(page);
    await chat.open(heddle, thread);
    await expect(chat.message("Answer 2 to two")).toBeVisible();

    await retry("two");
    await expect(chat.message("Answer 3 to two")).toBeVisible();
    await chat.idle();
    await edit("one", "uno");
    await expect(chat.message("Answer 4 to uno")).toBeVisible();
    await chat.idle();
    await expect(chat.messages).toHaveCount(2);
    await chat.ask("dos", "Answer 5 to dos");
    await retry("dos");
    await expect(chat.message("Answer 6 to dos")).toBeVisible();
    await expect(count("dos")).toHaveAccessibleName("Branch 2 of 2");
    await expect(count("uno")).toHaveAccessibleName("Branch 2 of 2");
    await chat.idle();

    await previous("uno").click();
    await expect(chat.message("Answer 3 to two")).toBeVisible();
    await expect(count("one")).toHaveAccessibleName("Branch 1 of 2");
    await expect(count("two")).toHaveAccessibleName("Branch 2 of 2");
    await previous("two").click();
    await expect(chat.message("Answer 2 to two")).toBeVisible();
    await expect(chat.messages).toHaveCount(4);

    // The retry of the second message starts at the end of the first turn.
    const states = await heddle.client().threads.getHistory(thread, { limit: 100 });
    const begin = states.find(
        ({ checkpoint }) => checkpoint.checkpoint_id === sent[0]?.checkpoint?.checkpoint_id,
    );
    expect((begin?.values as { messages: unknown[] }).messages).toHaveLength(2);
});

test("a conversation continues from the shown branch", async ({ serve, chat, page }) => {
    const heddle = await serve({ script: COUNTS });
    const { count, previous, next, retry } = turnsOf(page);
    await chat.open(heddle, await conversation(heddle, ["one"]));
    await retry("one");
    await expect(chat.message("Answer 2 to one")).toBeVisible();
    await chat.idle();
    await previous("one").click();
    await expect(chat.message("Answer 1 to one")).toBeVisible();
    await chat.ask("more", "Answer 3 to more");
    await expect(chat.message("Answer 1 to one")).toBeVisible();
    await expect(count("one")).toHaveAccessibleName("Branch 1 of 2");
    await expect(chat.messages).toHaveCount(4);
    await next("one").click();
    await expect(chat.message("Answer 2 to one")).toBeVisible();
    await expect(chat.messages).toHaveCount(2);
});

test("forks of other clients count, whichever checkpoint they start from", async ({
    serve,
    chat,
    page,
}) => {
    const heddle = await serve({ script: COUNTS });
    const { count, previous, retry } = turnsOf(page);
    const thread = await conversation(heddle, ["one", "two"]);
    // As the official hook does: from the checkpoint of the input itself.
    await fork(heddle, thread, "two");
    await fork(heddle, thread, "two");
    await chat.open(heddle, thread);
    await expect(count("two")).toHaveAccessibleName("Branch 3 of 3");
    await retry("two");
    await expect(chat.message("Answer 5 to two")).toBeVisible();
    await expect(count("two")).toHaveAccessibleName("Branch 4 of 4");
    await chat.idle();
    for (const answer of [4, 3, 2]) {
        await previous("two").click();
        await expect(chat.message(`Answer ${answer} to two`)).toBeVisible();
    }
    await expect(count("two")).toHaveAccessibleName("Branch 1 of 4");
    await expect(count("one")).toHaveCount(0);
});

test("a turn of several messages is resent as a whole", async ({ serve, chat, page }) => {
    const heddle = await serve({ script: COUNTS });
    const { turn, count, edit } = turnsOf(page);
    const client = heddle.client();
    const { thread_id: thread } = await client.threads.create();
    const messages = [...human("first", "m1").messages, ...human("second", "m2").messages];
    await client.runs.wait(thread, "agent", { input: { messages } });
    const sent = runsOf(page);
    await chat.open(heddle, thread);
    await edit("second", "changed");
    await expect(chat.message("Answer 2 to changed")).toBeVisible();
    await chat.idle();
    await expect(turn("first")).toBeVisible();
    await expect(count("first")).toHaveAccessibleName("Branch 2 of 2");
    await expect(count("changed")).toHaveCount(0);
    expect(sent[0]?.input.messages.map(({ content }) => content)).toEqual(["first", "changed"]);
    expect(sent[0]?.input.messages.filter(({ id }) => id === "m1" || id === "m2")).toEqual([]);
});

test("an edit keeps the image", async ({ serve, chat, page }) => {
    const heddle = await serve({ script: { rules: [{ content: "Answer {{call}}" }] } });
    const { edit } = turnsOf(page);
    const client = heddle.client();
    const { thread_id: thread } = await client.threads.create();
    const image = { type: "image_url", image_url: { url: IMAGE } };
    const content = [{ type: "text", text: "what is this" }, image];
    await client.runs.wait(thread, "agent", {
        input: { messages: [{ type: "human", id: "m1", content }] },
    });
    const sent = runsOf(page);
    await chat.open(heddle, thread);
    await edit("what is this", "and this");
    await expect(chat.message("Answer 2")).toBeVisible();
    expect(sent[0]?.input.messages[0]?.content).toEqual([
        { type: "text", text: "and this" },
        image,
    ]);
});

test("turns are operated by keyboard, and the focus stays", async ({ serve, chat, page }) => {
    const heddle = await serve({ script: COUNTS });
    const { turn, count, previous, next } = turnsOf(page);
    await chat.open(heddle, await conversation(heddle, ["one"]));
    const button = (name: string) => turn(/./).getByRole("button", { name });

    await button("Edit").focus();
    await page.keyboard.press("Enter");
    const field = page.getByRole("textbox", { name: "Edited message" });
    await expect(field).toBeFocused();
    await expect(field).toHaveValue("one");
    await page.keyboard.type(" more");
    await page.keyboard.press("Escape");
    await expect(button("Edit")).toBeFocused();
    await expect(turn("one")).not.toContainText("more");

    await page.keyboard.press("Enter");
    await expect(field).toHaveValue("one");
    await page.keyboard.type("!");
    await page.keyboard.press("Control+Enter");
    await expect(chat.message("Answer 2 to one!")).toBeVisible();
    await expect(button("Edit")).toBeFocused();
    await chat.idle();

    await page.keyboard.press("Tab");
    await expect(button("Retry")).toBeFocused();
    await page.keyboard.press("Enter");
    await expect(chat.message("Answer 3 to one!")).toBeVisible();
    await expect(button("Retry")).toBeFocused();
    await chat.idle();
    await expect(count("one")).toHaveAccessibleName("Branch 3 of 3");

    await page.keyboard.press("Tab");
    await expect(previous("one")).toBeFocused();
    await page.keyboard.press("Enter");
    await expect(chat.message("Answer 2 to one!")).toBeVisible();
    await expect(previous("one")).toBeFocused();
    await page.keyboard.press("Enter");
    await expect(chat.message("Answer 1 to one")).toBeVisible();
    await expect(page.getByRole("status").filter({ hasText: "Branch 1 of 3" })).toHaveCount(1);
    await page.keyboard.press("Tab");
    await expect(next("one")).toBeFocused();
    await page.keyboard.press("Enter");
    await expect(chat.message("Answer 2 to one!")).toBeVisible();
    await expect(page.getByRole("status").filter({ hasText: "Branch 2 of 3" })).toHaveCount(1);
});

test("the tools are beside the message, the switcher is under it", async ({
    serve,
    chat,
    page,
}) => {
    const heddle = await serve({ script: COUNTS });
    const { turn, count, retry } = turnsOf(page);
    await chat.open(heddle, await conversation(heddle, ["one"]));
    await retry("one");
    await expect(count("one")).toBeVisible();
    await chat.idle();
    for (const width of [1280, 390]) {
        await page.setViewportSize({ width, height: 800 });
        await turn("one").hover();
        await expect(async () => {
            // Elements that are read one by one may move in between: then read them again.
            const [whole, said, edit, again, switcher] = await Promise.all(
                [
                    turn("one"),
                    turn("one").getByText("one", { exact: true }),
                    turn("one").getByRole("button", { name: "Edit" }),
                    turn("one").getByRole("button", { name: "Retry" }),
                    count("one"),
                ].map(async (locator) => (await locator.boundingBox())!),
            );
            expect(edit!.y).toBe(again!.y);
            expect(edit!.x + edit!.width).toBeLessThanOrEqual(again!.x);
            expect(edit!.x).toBeGreaterThan(whole!.x + whole!.width / 2);
            expect(again!.x + again!.width).toBeGreaterThanOrEqual(said!.x + said!.width);
            expect(again!.x + again!.width).toBeLessThanOrEqual(width);
            expect(switcher!.y).toBeGreaterThanOrEqual(said!.y + said!.height);
            expect(
                Math.abs(switcher!.x + switcher!.width / 2 - (whole!.x + whole!.width / 2)),
            ).toBeLessThan(width / 10);
        }).toPass({ timeout: 60_000 });
    }
    await expectNoViolations(page);
});
