// The official React hook alone, against a real server: retry, edit and branches as in its
// documentation. Uses nothing of the page, so the result holds for any page.
import { cpSync, mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { build } from "esbuild";
import type { Page } from "@playwright/test";
import { expect, test, waitFor, type Heddle } from "../lib";
import type { PacedModel } from "../lib/paced";

let folder = "";

test.beforeAll(async () => {
    folder = mkdtempSync(join(tmpdir(), "heddle-hook-"));
    mkdirSync(join(folder, "assets"));
    const source = join(__dirname, "../hook");
    cpSync(join(source, "index.html"), join(folder, "index.html"));
    await build({
        entryPoints: [join(source, "page.tsx")],
        outfile: join(folder, "assets/page.js"),
        bundle: true,
        format: "esm",
        target: "es2022",
        jsx: "automatic",
        define: { "process.env.NODE_ENV": '"production"' },
        logLevel: "error",
    });
});

test.afterAll(() => rmSync(folder, { recursive: true, force: true }));

// Each answer contains the number of its request to the model, so that branches differ.
const SCRIPT = { rules: [{ content: "answer {{call}} to {{user}}" }] };
// An answer that ends when the test allows it.
const LONG = ["answer {{call}}:", ...Array.from({ length: 40 }, () => " word"), " end"];
const HELD = 20;

const composer = (page: Page) => page.getByRole("textbox", { name: "Message", exact: true });
const said = (page: Page) => page.getByRole("article");
const you = (page: Page, text: string) =>
    page.getByRole("article", { name: "You" }).filter({ hasText: text });
const agent = (page: Page, text: string) =>
    page.getByRole("article", { name: "Agent" }).filter({ hasText: text });
const count = (page: Page, text: string) =>
    you(page, text).getByRole("group", { name: "Branches" }).locator("span");
const idle = (page: Page) => expect(page.getByRole("button", { name: "Stop" })).toBeHidden();

async function say(page: Page, text: string) {
    await composer(page).fill(text);
    await page.getByRole("button", { name: "Send" }).click();
}

async function ask(page: Page, text: string, answer: string) {
    await say(page, text);
    await expect(agent(page, answer)).toBeVisible();
    await idle(page);
}

async function retry(page: Page, text: string, answer: string) {
    await you(page, text).getByRole("button", { name: "Retry" }).click();
    await expect(agent(page, answer)).toBeVisible();
    await idle(page);
}

async function shows(page: Page, texts: string[]) {
    await expect(
        said(page)
            .locator("p")
            .or(page.getByRole("article", { name: "Agent" })),
    ).toHaveText(texts);
}

async function open(
    serve: (options: object) => Promise<Heddle>,
    page: Page,
    model?: PacedModel,
): Promise<Heddle> {
    const heddle = await serve({ script: SCRIPT, env: model?.env, page: folder });
    await page.goto(heddle.url);
    await expect(composer(page)).toBeVisible();
    return heddle;
}

test("the first message of a thread is retried three times and every answer is kept", async ({
    serve,
    page,
}) => {
    const heddle = await open(serve, page);
    await ask(page, "hello", "answer 1 to hello");
    await expect(you(page, "hello").getByRole("group")).toHaveCount(0);
    for (const n of [2, 3, 4]) {
        await retry(page, "hello", `answer ${n} to hello`);
        await expect(count(page, "hello")).toHaveText(`${n} / ${n}`);
        await shows(page, ["hello", `answer ${n} to hello`]);
    }
    for (const n of [3, 2, 1]) {
        await you(page, "hello").getByRole("button", { name: "Previous" }).click();
        await expect(count(page, "hello")).toHaveText(`${n} / 4`);
        await shows(page, ["hello", `answer ${n} to hello`]);
    }
    // Nothing was replaced: four messages of the user, each with its own id.
    const history = await heddle
        .client()
        .threads.getHistory<{ messages: { id: string; type: string }[] }>(
            page.url().split("#")[1] ?? "",
            { limit: 100 },
        );
    const ids = history
        .flatMap(({ values }) => values.messages ?? [])
        .filter(({ type }) => type === "human");
    expect(new Set(ids.map(({ id }) => id)).size).toBe(4);
});

test("an edit and a retry are both branches, also inside of a branch, and survive a reload", async ({
    serve,
    page,
}) => {
    await open(serve, page);
    await ask(page, "one", "answer 1 to one");
    await ask(page, "two", "answer 2 to two");
    await retry(page, "two", "answer 3 to two");
    await expect(count(page, "two")).toHaveText("2 / 2");

    await you(page, "two").getByRole("button", { name: "Edit" }).click();
    await page.getByRole("textbox", { name: "Edit message" }).fill("zwei");
    await page.getByRole("button", { name: "Save" }).click();
    await expect(agent(page, "answer 4 to zwei")).toBeVisible();
    await idle(page);
    await expect(count(page, "zwei")).toHaveText("3 / 3");
    await expect(you(page, "one").getByRole("group")).toHaveCount(0);

    await ask(page, "three", "answer 5 to three");
    await retry(page, "three", "answer 6 to three");
    await expect(count(page, "three")).toHaveText("2 / 2");
    await expect(count(page, "zwei")).toHaveText("3 / 3");

    await page.reload();
    await shows(page, [
        "one",
        "answer 1 to one",
        "zwei",
        "answer 4 to zwei",
        "three",
        "answer 6 to three",
    ]);
    await expect(count(page, "zwei")).toHaveText("3 / 3");
    await expect(count(page, "three")).toHaveText("2 / 2");
    await you(page, "three").getByRole("button", { name: "Previous" }).click();
    await shows(page, [
        "one",
        "answer 1 to one",
        "zwei",
        "answer 4 to zwei",
        "three",
        "answer 5 to three",
    ]);
    await you(page, "zwei").getByRole("button", { name: "Previous" }).click();
    await shows(page, ["one", "answer 1 to one", "two", "answer 3 to two"]);
    await you(page, "two").getByRole("button", { name: "Previous" }).click();
    await shows(page, ["one", "answer 1 to one", "two", "answer 2 to two"]);
});

test("branches are switched while the agent is answering", async ({ serve, pace, page }) => {
    const model = await pace(LONG, HELD);
    await open(serve, page, model);
    await ask(page, "one", "You said: one");
    await retry(page, "one", "You said: one");
    await expect(count(page, "one")).toHaveText("2 / 2");
    await idle(page); // the answer looks like the previous one and may have been that one until now
    await say(page, "count");
    await expect(agent(page, "answer 3: word")).toBeVisible();
    await you(page, "one").getByRole("button", { name: "Previous" }).click();
    model.finish();
    await idle(page);
    // The answer is complete on its branch, and the other branch is unchanged.
    await page.reload();
    await expect(agent(page, "answer 3: word")).toHaveText(/^answer 3: (word ){40}end$/);
    await expect(count(page, "one")).toHaveText("2 / 2");
    await you(page, "one").getByRole("button", { name: "Previous" }).click();
    await shows(page, ["one", "You said: one"]);
});

test("a reload in the middle of an answer rejoins the stream", async ({ serve, pace, page }) => {
    const model = await pace(LONG, HELD);
    await open(serve, page, model);
    await say(page, "count");
    await expect(agent(page, "answer 1: word")).toBeVisible();
    await page.reload();
    await expect(page.getByRole("button", { name: "Stop" })).toBeVisible();
    model.finish();
    await expect(agent(page, "answer 1:")).toHaveText(/^answer 1: (word ){40}end$/);
    await idle(page);
});

test("stop cancels the model request, and the message can be retried", async ({
    serve,
    pace,
    page,
}) => {
    const model = await pace(LONG, HELD);
    await open(serve, page, model);
    await say(page, "count");
    await expect(agent(page, "answer 1: word")).toBeVisible();
    await page.getByRole("button", { name: "Stop" }).click();
    await idle(page);
    await waitFor(() => model.left === 1, "the model to be left");
    await page.reload();
    await you(page, "count").getByRole("button", { name: "Edit" }).click();
    await page.getByRole("textbox", { name: "Edit message" }).fill("quickly");
    await page.getByRole("button", { name: "Save" }).click();
    await expect(agent(page, "You said: quickly")).toBeVisible();
    await expect(count(page, "quickly")).toHaveText("2 / 2");
});
