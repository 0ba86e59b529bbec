// A conversation of 200 messages: typing and streaming render nothing else.
import type { Locator, Page } from "@playwright/test";
import { expect, longThread, test, waitFor } from "../lib";
import { expectWhole, expectWords, pieces, watchWords } from "../lib/words";

const COUNT = 60;

declare global {
    interface Window {
        changed: Set<string>;
    }
}

/**
 * Records changes within the list of messages from now on, by the number of the message ("list":
 * outside of them).
 */
async function watchChanges(page: Page) {
    await page.getByRole("log").evaluate((log) => {
        window.changed = new Set();
        const numberOf = (node: Node) => {
            const element = node instanceof Element ? node : node.parentElement;
            const article = element?.closest("article");
            return article
                ? String([...log.querySelectorAll("article")].indexOf(article) + 1)
                : "list";
        };
        new MutationObserver((records) => {
            for (const { target } of records) window.changed.add(numberOf(target));
        }).observe(log, { subtree: true, childList: true, characterData: true, attributes: true });
    });
}

const changes = (page: Page) => page.evaluate(() => [...window.changed].sort());

test("typing renders none of 200 messages", async ({ serve, chat, page }) => {
    const heddle = await serve();
    await chat.open(heddle, await longThread(heddle, 200));
    await expect(chat.message("You said: The end")).toBeVisible();
    await expect(chat.messages).toHaveCount(202);
    await chat.idle();
    await chat.composer.click();
    await watchChanges(page);
    await page.evaluate(() => {
        const slow = new PerformanceObserver((list) => {
            for (const { duration } of list.getEntries())
                document.body.dataset.slowest = String(
                    Math.max(duration, Number(document.body.dataset.slowest ?? 0)),
                );
        });
        slow.observe({ type: "event", durationThreshold: 16 } as PerformanceObserverInit);
    });
    const text = "What I type is shown at once, however long the conversation is. ".repeat(2);
    await chat.composer.pressSequentially(text);
    await expect(chat.composer).toHaveValue(text);
    expect(await changes(page)).toEqual([]);
    const slowest = await page.evaluate(() => document.body.dataset.slowest ?? "under 16");
    test.info().annotations.push({ type: "slowest key", description: `${slowest} ms` });
});

test("a streaming answer changes only its own message, and typing continues", async ({
    serve,
    pace,
    chat,
    page,
}) => {
    await watchWords(page);
    const model = await pace(pieces(COUNT), COUNT - 3);
    const heddle = await serve({ env: model.env });
    await chat.open(heddle, await longThread(heddle, 200));
    await expect(chat.messages).toHaveCount(202);
    await chat.say("count");
    await expectWords(page, 3);
    await watchChanges(page);
    model.goOn(37);
    await chat.composer.pressSequentially("next question");
    await expectWords(page, 40);
    expect(await changes(page)).toEqual(["204"]);
    model.finish();
    await expectWhole(page, COUNT);
    await expect(chat.composer).toHaveValue("next question");
});

/** The scroll position of a list once it is stable. */
async function restOf(box: Locator): Promise<number> {
    const topAfter = (frames: number) =>
        box.evaluate(async (element, count) => {
            for (let i = 0; i < count; i++)
                await new Promise((resolve) => requestAnimationFrame(resolve));
            return element.scrollTop;
        }, frames);
    let top = await topAfter(2);
    await waitFor(async () => {
        const before = top;
        top = await topAfter(10);
        return top === before;
    }, "the list to stand still");
    return top;
}

test("the list follows the answer unless the user has scrolled up", async ({
    serve,
    pace,
    chat,
    page,
}) => {
    const model = await pace(pieces(50, "\n\n"), 42);
    const heddle = await serve({ env: model.env });
    await chat.open(heddle, await longThread(heddle, 60));
    const log = page.getByRole("log");
    const jump = page.getByRole("button", { name: "Jump to the latest" });
    const isAtEnd = () =>
        log.evaluate((box) => box.scrollHeight - box.scrollTop - box.clientHeight < 60);
    await expect(chat.message("You said: The end")).toBeInViewport();
    await expect(jump).toHaveCount(0);

    await chat.say("count");
    await expect(chat.message("w8")).toBeVisible();
    await expect.poll(isAtEnd).toBe(true);
    await log.hover();
    await page.mouse.wheel(0, -2000);
    await expect(jump).toBeVisible();
    const top = await restOf(log);
    model.finish();
    await expect(chat.message("w40")).toBeAttached();
    expect(Math.abs((await log.evaluate((box) => box.scrollTop)) - top)).toBeLessThan(5);
    await jump.click();
    await expect.poll(isAtEnd).toBe(true);
    await expect(jump).toHaveCount(0);
    await expect(chat.message("w50")).toBeVisible();
    await expect.poll(isAtEnd).toBe(true);
    await chat.idle();
});
