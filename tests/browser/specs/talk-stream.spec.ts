// Streaming answers: a reload, a restarted or killed server, a lost network, other tabs and other
// clients. Every state that the page showed is checked (lib/words.ts).
import type { Page } from "@playwright/test";
import {
    expect,
    expectNoViolations,
    FAILED_REQUEST,
    human,
    chatOf,
    test as base,
    waitFor,
    type Heddle,
    type ServeOptions,
} from "../lib";
import type { PacedModel } from "../lib/paced";
import { startWire } from "../lib/wire";
import { expectWhole, expectWords, pieces, watchWords } from "../lib/words";

const COUNT = 80;
/** Words that the model holds back until the test has done its part in the middle of an answer. */
const HELD = 30;
const WORDS = pieces(COUNT);

type Counting = { heddle: Heddle; model: PacedModel };

const test = base.extend<{
    /** counting(): a server whose model counts up to its limit. */
    counting: (options?: ServeOptions) => Promise<Counting>;
    /** counted(words): the same, and a new conversation with this many visible words. */
    counted: (words: number, options?: ServeOptions) => Promise<Counting>;
}>({
    counting: async ({ serve, pace }, use) =>
        use(async (options) => {
            const model = await pace(WORDS, HELD);
            return { model, heddle: await serve({ env: model.env, ...options }) };
        }),
    counted: async ({ counting, chat, page }, use) =>
        use(async (words, options) => {
            const made = await counting(options);
            await chat.open(made.heddle);
            await chat.say("count");
            await expectWords(page, words);
            return made;
        }),
});

test.beforeEach(async ({ page }) => watchWords(page));

test("an answer is shown as it is written", async ({ counted, chat, page }) => {
    const { model } = await counted(10);
    await expect(chat.stop).toBeVisible();
    model.finish();
    await expectWhole(page, COUNT);
    expect(model.calls).toBe(1);
});

test("a message written while an answer streams is queued and sent after it", async ({
    counted,
    chat,
    page,
}) => {
    const { model } = await counted(10);
    const queue = page.getByRole("list", { name: "Queued messages" });
    for (const text of ["first", "second", "third"]) {
        await chat.composer.fill(text);
        await chat.composer.press("Enter");
        await expect(chat.composer).toHaveValue("");
    }
    await expect(queue.getByRole("listitem")).toHaveText([/first/, /second/, /third/]);
    await expectNoViolations(page);
    await queue
        .getByRole("listitem")
        .nth(1)
        .getByRole("button", { name: /Remove/ })
        .click();
    await expect(queue.getByRole("listitem")).toHaveText([/first/, /third/]);
    model.finish();
    await expect(chat.message("You said: third")).toBeVisible();
    await expect(queue).toHaveCount(0);
    await expect(chat.messages).toHaveText([/count/, /agent/, /first/, /first/, /third/, /third/]);
});

test("queued messages become the draft when the user leaves the conversation", async ({
    counted,
    chat,
    page,
}) => {
    const { model } = await counted(10);
    await chat.composer.fill("later");
    await chat.composer.press("Enter");
    await expect(page.getByRole("list", { name: "Queued messages" })).toBeVisible();
    await page.getByRole("button", { name: "New conversation" }).click();
    await expect(chat.composer).toHaveValue("");
    await page.goBack();
    await expect(chat.composer).toHaveValue("later");
    model.finish();
    await expectWhole(page, COUNT);
});

test("a reload in the middle of an answer continues the stream", async ({ counted, page }) => {
    const { model } = await counted(20);
    await page.reload();
    await expectWords(page, 20);
    await page.reload();
    await expectWords(page, 20);
    model.finish();
    await expectWhole(page, COUNT);
    expect(model.calls).toBe(1);
});

for (const how of ["kill", "stop"] as const) {
    test(`a server restart (${how}) in the middle of an answer restarts the answer, which is complete`, async ({
        counted,
        chat,
        page,
        watch,
    }) => {
        watch.allow(FAILED_REQUEST);
        const { heddle, model } = await counted(20, { options: ["--drain", "0"] });
        await heddle.restart(how);
        model.finish();
        await expectWhole(page, COUNT);
        await expect(chat.messages).toHaveCount(2);
        expect(model.calls).toBe(2);
    });
}

test("during a server outage the page reports it, keeps its content, and continues afterwards", async ({
    counted,
    chat,
    page,
    watch,
}) => {
    watch.allow(FAILED_REQUEST);
    const { heddle, model } = await counted(20);
    await heddle.kill();
    await expect(page.getByText("The server can't be reached. Reconnecting…")).toBeVisible();
    await expect(chat.message("w20")).toBeVisible();
    await heddle.start();
    model.finish();
    await expectWhole(page, COUNT);
    await expect(page.getByText("The server can't be reached. Reconnecting…")).toBeHidden();
});

test("a network outage loses and duplicates nothing, and the model gets one request", async ({
    counting,
    chat,
    page,
    watch,
}) => {
    watch.allow(FAILED_REQUEST);
    const { heddle, model } = await counting();
    const wire = await startWire(heddle.url);
    await page.goto(wire.url);
    await chat.say("count");
    await expectWords(page, 15);
    wire.cut();
    await expect(page.getByText("The server can't be reached. Reconnecting…")).toBeVisible();
    await expect(chat.message("w15")).toBeVisible();
    wire.mend();
    model.finish();
    await expectWhole(page, COUNT);
    expect(model.calls).toBe(1);
    await page.goto("about:blank");
    await wire.close();
});

async function openTab(page: Page) {
    const other = await page.context().newPage();
    await watchWords(other);
    return chatOf(other);
}

test("two tabs on one thread both show the answer and each other's messages", async ({
    counting,
    chat,
    page,
}) => {
    const { heddle, model } = await counting();
    await chat.open(heddle);
    await chat.ask("hello", "You said: hello");
    const other = await openTab(page);
    await other.open(heddle, await chat.thread());
    await expect(other.message("You said: hello")).toBeVisible();

    await chat.say("count");
    await expectWords(other.page, 10);
    await expect(other.stop).toBeVisible();
    model.finish();
    await expectWhole(page, COUNT);
    await expectWhole(other.page, COUNT);
    await expect(other.messages).toHaveCount(4);

    await other.ask("thank you", "You said: thank you");
    await expect(chat.message("You said: thank you")).toBeVisible();
    await expect(chat.messages).toHaveCount(6);
});

test("a tab opened in the middle of an answer joins the stream", async ({
    counted,
    chat,
    page,
}) => {
    const { heddle, model } = await counted(20);
    const other = await openTab(page);
    await other.open(heddle, await chat.thread());
    await expectWords(other.page, 20);
    model.finish();
    await expectWhole(other.page, COUNT);
    await expectWhole(page, COUNT);
    expect(model.calls).toBe(1);
});

test("a run started by another client is shown and can be stopped here", async ({
    counting,
    chat,
    page,
}) => {
    const { heddle } = await counting();
    await chat.open(heddle);
    await chat.ask("hello", "You said: hello");
    const client = heddle.client();
    const thread = await chat.thread();
    const run = await client.runs.create(thread, "agent", {
        input: human("count"),
        streamMode: ["values", "messages-tuple"],
    });
    await expectWords(page, 10);
    await chat.stop.click();
    await expect(chat.message("Stopped")).toBeVisible();
    const { status } = await client.runs.get(thread, run.run_id);
    expect(status).toBe("interrupted");
});

test("an answer is complete after leaving the conversation and returning", async ({
    counted,
    chat,
    page,
}) => {
    const { heddle, model } = await counted(10);
    const thread = await chat.thread();
    await page.getByRole("button", { name: "New conversation" }).first().click();
    await expect(page.getByRole("heading", { name: "How can I help you?" })).toBeVisible();
    model.finish();
    await waitFor(
        async () => (await heddle.client().threads.get(thread)).status === "idle",
        "the answer is complete",
    );
    await page.goto(`${heddle.url}/#/t/${thread}`);
    await expectWhole(page, COUNT);
});
