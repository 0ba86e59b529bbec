// The conversation: messages, Markdown, code, images, tool calls, the composer, stopping, errors.
import type { Locator } from "@playwright/test";
import {
    assistant,
    conversation,
    expect,
    expectNoViolations,
    FAILED_REQUEST,
    test,
    waitFor,
    type Chat,
    type Script,
    type Serve,
} from "../lib";
import { holdNotices } from "../lib/notices";
import { words } from "../lib/words";

const MARKDOWN = `# Weather

Some **bold** and *slanted* text, \`code\`, a [link](https://example.com/a) and [none](javascript:alert(1)).

1. one
2. two
   - nested
   - [x] done

| city | days |
|---|---:|
| Oslo | 3 |

\`\`\`python
def longest(text):  # a comment
    return max(text.split(), key=len)
\`\`\`

<img src="https://example.com/x.png" onerror="alert(1)"> &amp; ![a picture](https://example.com/y.png)`;

const PIXEL =
    "iVBORw0KGgoAAAANSUhEUgAAAAoAAAAKCAYAAACNMs+9AAAAFUlEQVR42mP8z8BQz0AEYBxVSF+FABJADveWkH6oAAAAAElFTkSuQmCC";

const last = (locator: Locator) => locator.last();

test("Markdown becomes elements, harmful content stays text, and no other host is contacted", async ({
    serve,
    chat,
    page,
}) => {
    const heddle = await serve({
        script: { rules: [{ content: MARKDOWN, pieces: { characters: 7 } }] },
    });
    await chat.open(heddle);
    await chat.ask("hello", "longest");
    const answer = last(chat.messages);
    await expect(answer.getByRole("heading", { name: "Weather", level: 3 })).toBeVisible();
    await expect(answer.locator("strong")).toHaveText("bold");
    await expect(answer.getByRole("link", { name: "link" })).toHaveAttribute(
        "rel",
        "noopener noreferrer",
    );
    await expect(answer.getByRole("link", { name: "none" })).toHaveCount(0);
    await expect(answer.locator("li li")).toHaveText(["nested", "done"]);
    await expect(answer.getByRole("checkbox", { name: "Done" })).toBeChecked();
    await expect(answer.getByRole("cell", { name: "3" })).toBeVisible();
    await expect(answer.getByRole("region", { name: "Code, python" })).toContainText(
        "return max(text.split(), key=len)",
    );
    await expect(answer).toContainText(
        '<img src="https://example.com/x.png" onerror="alert(1)"> &',
    );
    await expect(answer.getByRole("link", { name: "a picture" })).toHaveAttribute(
        "href",
        "https://example.com/y.png",
    );
    await expect(answer.locator("img")).toHaveCount(0);
    await expectNoViolations(page);
});

test("code and answers are copied", async ({ serve, chat, page, context }) => {
    await context.grantPermissions(["clipboard-read", "clipboard-write"]);
    const heddle = await serve({
        script: { rules: [{ content: "Look:\n\n```c\nint main(void);\n```" }] },
    });
    await holdNotices(page);
    await chat.open(heddle);
    await chat.ask("hello", "Look:");
    await page.getByRole("button", { name: "Copy code" }).click();
    await expect(page.getByRole("status").filter({ hasText: "Copied" })).toHaveCount(1);
    expect(await page.evaluate(() => navigator.clipboard.readText())).toBe("int main(void);");
    await page.getByRole("button", { name: "Copy answer" }).click();
    await expect
        .poll(() => page.evaluate(() => navigator.clipboard.readText()))
        .toContain("Look:\n\n```c");
});

test("tool calls are collapsed, with arguments, status and result", async ({
    heddle,
    chat,
    page,
    weather,
}) => {
    const name = `Forecaster ${Date.now()}`;
    await assistant(heddle, name, { http_tools: [weather.tool] });
    weather.hold();
    await chat.open(heddle);
    await chat.say(`@${name} use weather with {"city": "Oslo"}`);
    const call = page.locator("details").filter({ hasText: "weather" });
    await expect(call).toContainText('city: "Oslo"');
    await expect(call).toContainText("Running");
    await waitFor(() => weather.cities.length > 0, "the tool is asked");
    weather.release();
    await expect(call).toContainText("Done");
    await expect(call.getByText("sunny in Oslo")).toBeHidden();
    await call.locator("summary").press("Enter");
    await expect(call.getByRole("region", { name: "Result" })).toHaveText("sunny in Oslo");
    await chat.idle();
    await expect(chat.message("The tools said: sunny in Oslo")).toBeVisible();
    await expect(chat.messages.filter({ hasText: name }).first()).toBeVisible();
});

test("a model's reasoning is collapsed", async ({ serve, chat, page }) => {
    const heddle = await serve({
        script: { rules: [{ reasoning: "It is about greetings.", content: "Good morning." }] },
    });
    await chat.open(heddle);
    await chat.ask("hello", "Good morning.");
    await expect(page.getByText("It is about greetings.")).toBeHidden();
    await page.getByText("Thoughts", { exact: true }).click();
    await expect(page.getByText("It is about greetings.")).toBeVisible();
});

test("images are attached, pasted, previewed, removed, sent and enlarged", async ({
    heddle,
    chat,
    page,
}) => {
    await chat.open(heddle);
    const file = { name: "red.png", mimeType: "image/png", buffer: Buffer.from(PIXEL, "base64") };
    await page
        .getByLabel("Images", { exact: true })
        .setInputFiles([file, { ...file, name: "other.png" }]);
    await expect(page.getByRole("img", { name: "red.png" })).toBeVisible();
    await page.getByRole("button", { name: "Remove other.png" }).click();
    await expect(page.getByRole("img", { name: "other.png" })).toHaveCount(0);
    await chat.composer.evaluate((area, data) => {
        const bytes = Uint8Array.from(atob(data), (char) => char.charCodeAt(0));
        const clipboardData = new DataTransfer();
        clipboardData.items.add(new File([bytes], "pasted.png", { type: "image/png" }));
        area.dispatchEvent(
            new ClipboardEvent("paste", { clipboardData, bubbles: true, cancelable: true }),
        );
    }, PIXEL);
    await expect(page.getByRole("img", { name: "pasted.png" })).toBeVisible();
    await chat.ask("What do you see?", "You said:");
    const own = chat.messages.first();
    await expect(own.getByRole("img", { name: /Image you sent/ })).toHaveCount(2);
    const thread = await chat.thread();
    const state = await heddle
        .client()
        .threads.getState<{ messages: { content: unknown }[] }>(thread);
    expect(state.values.messages[0]?.content).toEqual([
        { type: "text", text: "What do you see?" },
        { type: "image_url", image_url: { url: `data:image/png;base64,${PIXEL}` } },
        { type: "image_url", image_url: { url: `data:image/png;base64,${PIXEL}` } },
    ]);
    await own.getByRole("button", { name: "Image you sent 1: enlarge" }).click();
    await expect(page.getByRole("dialog", { name: "Image you sent 1" })).toBeVisible();
    await page.keyboard.press("Escape");
    await expect(page.getByRole("dialog")).toHaveCount(0);
});

test("a large image is scaled down before it is sent, and other files are rejected", async ({
    heddle,
    chat,
    page,
}) => {
    await chat.open(heddle);
    const large = await page.evaluate(async () => {
        const canvas = new OffscreenCanvas(4000, 1000);
        canvas.getContext("2d")!.fillRect(0, 0, 2000, 1000);
        const blob = await canvas.convertToBlob({ type: "image/png" });
        return [...new Uint8Array(await blob.arrayBuffer())];
    });
    const input = page.getByLabel("Images", { exact: true });
    await input.setInputFiles({
        name: "large.png",
        mimeType: "image/png",
        buffer: Buffer.from(large),
    });
    const preview = page.getByRole("img", { name: "large.png" });
    await expect(preview).toBeVisible();
    const size = () =>
        preview.evaluate((img) => [
            (img as HTMLImageElement).naturalWidth,
            (img as HTMLImageElement).naturalHeight,
        ]);
    await expect.poll(size).toEqual([1568, 392]);
    await input.setInputFiles({
        name: "notes.txt",
        mimeType: "text/plain",
        buffer: Buffer.from("no picture"),
    });
    await expect(page.getByRole("alert")).toHaveText("notes.txt is not an image.");
});

test("too many images are reported, and a file dropped elsewhere changes nothing", async ({
    heddle,
    chat,
    page,
}) => {
    await chat.open(heddle);
    const picture = { mimeType: "image/png", buffer: Buffer.from(PIXEL, "base64") };
    const files = Array.from({ length: 9 }, (_, at) => ({ ...picture, name: `p${at}.png` }));
    await page.getByLabel("Images", { exact: true }).setInputFiles(files);
    await expect(page.getByRole("alert")).toHaveText("A message can have at most 8 images.");
    await expect(page.getByRole("button", { name: /^Remove p/ })).toHaveCount(8);
    const isRefused = await page.getByRole("main").evaluate((main) => {
        const dataTransfer = new DataTransfer();
        dataTransfer.items.add(new File(["x"], "x.png", { type: "image/png" }));
        const options = { dataTransfer, bubbles: true, cancelable: true };
        return ["dragover", "drop"].map(
            (name) => !main.dispatchEvent(new DragEvent(name, options)),
        );
    });
    expect(isRefused).toEqual([true, true]);
});

test("the composer: Enter sends, Shift+Enter does not, a draft survives, examples fill it", async ({
    heddle,
    chat,
    page,
}) => {
    await chat.open(heddle);
    await expect(chat.send).toBeDisabled();
    await page.getByRole("button", { name: /Say hello/ }).click();
    await expect(chat.composer).toHaveValue(/Hello, who are you/);
    await expect(chat.composer).toBeFocused();
    await chat.composer.fill("one");
    await chat.composer.press("Shift+Enter");
    await chat.composer.pressSequentially("two");
    await expect(chat.composer).toHaveValue("one\ntwo");
    await page.reload();
    await expect(chat.composer).toHaveValue("one\ntwo");
    await expect(chat.send).toBeEnabled(); // the agent is selected
    await chat.composer.press("Enter");
    await expect(chat.composer).toHaveValue("");
    await expect(chat.message(/You said: one\s+two/)).toBeVisible();
    await chat.idle();
    await page.reload();
    await expect(chat.message(/You said: one\s+two/)).toBeVisible();
    await expect(chat.composer).toHaveValue("");
});

test("Enter in an input method editor does not send", async ({ heddle, chat }) => {
    await chat.open(heddle);
    await chat.composer.fill("にほん");
    await chat.composer.evaluate((area) => {
        area.dispatchEvent(
            new KeyboardEvent("keydown", {
                key: "Enter",
                keyCode: 229,
                isComposing: true,
                bubbles: true,
                cancelable: true,
            }),
        );
    });
    await expect(chat.composer).toHaveValue("にほん");
    await expect(chat.messages).toHaveCount(0);
});

/** The first answer streams for minutes: each test stops it. */
const SLOW: Script = {
    rules: [
        { when: { contains: "count" }, content: words(5000), delay_ms: 60, times: 1 },
        { when: { contains: "count" }, content: "counted to the end" },
        { content: "You said: {{last}}" },
    ],
};

/** Starts a server, sends a message, and stops the answer while it streams. */
async function stopMidway(serve: Serve, chat: Chat, options: string[] = []) {
    await chat.open(await serve({ script: SLOW, options }));
    await chat.say("count");
    await expect(chat.message("w10")).toBeVisible();
    await chat.stop.click();
}

test("a stopped answer stays as a marked message and can be regenerated", async ({
    serve,
    chat,
    page,
}) => {
    await stopMidway(serve, chat);
    const stopped = chat.message("w1 w2 w3").filter({ hasText: "Stopped" });
    await expect(stopped).toBeVisible();
    await expect(chat.send).toBeVisible();
    await expect(page.getByText("Not stored")).toHaveCount(0);
    await expectNoViolations(page);
    await chat.ask("hello", "You said: hello");
    await page.reload();
    await expect(stopped).toBeVisible();
    await stopped.hover();
    await stopped.getByRole("button", { name: "Regenerate" }).click();
    await expect(chat.message("counted to the end")).toBeVisible();
    await expect(chat.messages).toHaveCount(2);
});

test("a stopped answer that is not stored is shown with its receipt and can be continued", async ({
    serve,
    chat,
    page,
}) => {
    await stopMidway(serve, chat, ["--stop-keep-answer=false"]);
    const notice = page.getByText(/Stopped at step 1, \d+ tokens streamed\./);
    await expect(notice).toBeVisible();
    await expect(last(chat.messages)).toContainText("w1 w2 w3");
    await expect(last(chat.messages)).toContainText("Not stored");
    await expect(chat.send).toBeVisible();
    await expectNoViolations(page);
    await page.reload();
    await expect(notice).toBeVisible();
    await page.getByRole("button", { name: "Continue" }).click();
    await expect(chat.message("counted to the end")).toBeVisible();
    await expect(notice).toHaveCount(0);
    await expect(chat.messages).toHaveCount(2);
});

test("a turn that failed stays visible behind the next message, also after a reload", async ({
    serve,
    chat,
    page,
    watch,
}) => {
    watch.allow(/the model has a cold/);
    const script: Script = {
        rules: [
            {
                when: { contains: "hello", call: 1 },
                error: { status: 400, message: "the model has a cold" },
            },
            { content: "You said: {{last}}" },
        ],
    };
    const heddle = await serve({ script });
    await chat.open(heddle);
    await chat.say("hello");
    await expect(page.getByRole("alert").filter({ hasText: "a cold" })).toBeVisible();
    await chat.ask("again", "You said: again");
    const failed = chat.message("hello").first();
    await expect(failed).toContainText(/The agent failed here\..*the model has a cold/);
    await page.reload();
    await expect(failed).toContainText("The agent failed here.");
    await expect(chat.messages).toHaveCount(3);
    await expectNoViolations(page);
});

test("a failed run shows its error in place of the answer and can be continued", async ({
    serve,
    chat,
    page,
    watch,
}) => {
    watch.allow(/the model has a cold/);
    const script: Script = {
        rules: [
            {
                when: { contains: "hello", call: 1 },
                error: { status: 400, message: "the model has a cold" },
            },
            { content: "You said: {{last}}" },
        ],
    };
    const heddle = await serve({ script });
    await chat.open(heddle);
    await chat.say("hello");
    const alert = page.getByRole("alert").filter({ hasText: "the model has a cold" });
    await expect(alert).toContainText("The agent failed.");
    await chat.idle();
    await page.reload();
    await expect(alert).toBeVisible();
    await expectNoViolations(page);
    await alert.getByRole("button", { name: "Retry" }).click();
    await expect(chat.message("You said: hello")).toBeVisible();
    await expect(alert).toHaveCount(0);
    await expect(chat.messages).toHaveCount(2);
});

test("a message that the server rejects stays, marked, and can be sent again", async ({
    heddle,
    chat,
    page,
    watch,
}) => {
    watch.allow(FAILED_REQUEST, /no chat today/);
    await chat.open(heddle);
    await chat.ask("hello", "You said: hello");
    await page.route("**/runs/stream", (route) =>
        route.fulfill({ status: 503, json: { detail: "no chat today" } }),
    );
    await chat.say("can you hear me?");
    const own = chat.message("can you hear me?");
    await expect(own).toContainText("Not sent.");
    await expect(own).toContainText("No chat today");
    await expectNoViolations(page);
    await own.getByRole("button", { name: "Send again" }).click();
    await expect(own).toContainText("Not sent.");
    await own.getByRole("button", { name: "Back to the editor" }).click();
    await expect(chat.composer).toHaveValue("can you hear me?");
    await expect(own).toHaveCount(0);
    await chat.send.click();
    await expect(own).toContainText("Not sent.");
    await page.unroute("**/runs/stream");
    await own.getByRole("button", { name: "Send again" }).click();
    await expect(chat.message("You said: can you hear me?")).toBeVisible();
    await expect(chat.messages).toHaveCount(4);
    await expect(page.getByText("Not sent.")).toHaveCount(0);
});

test("the first message of a thread that cannot be created is not lost", async ({
    heddle,
    chat,
    page,
    watch,
}) => {
    watch.allow(FAILED_REQUEST);
    await chat.open(heddle);
    await page.route("**/threads", (route) => route.abort("connectionrefused"));
    await chat.say("is anybody there?");
    const own = chat.message("is anybody there?");
    await expect(own).toContainText("Not sent.");
    await expect(own).toContainText("The server can't be reached.");
    await page.unroute("**/threads");
    await own.getByRole("button", { name: "Send again" }).click();
    await expect(chat.message("You said: is anybody there?")).toBeVisible();
    await expect(chat.messages).toHaveCount(2);
    expect(await chat.thread()).not.toBe("");
});

test("a state that fails to load shows an error and can be loaded again", async ({
    heddle,
    chat,
    page,
    watch,
}) => {
    watch.allow(FAILED_REQUEST);
    const thread = await conversation(heddle, ["hello"]);
    await page.route(/\/threads\/[^/]+\/state/, (route) =>
        route.fulfill({ status: 500, json: { detail: "a disk is full" } }),
    );
    await chat.open(heddle, thread);
    const alert = page.getByRole("alert").filter({ hasText: "a disk is full" });
    await expect(alert).toBeVisible();
    await page.unroute(/\/threads\/[^/]+\/state/);
    await alert.getByRole("button", { name: "Retry" }).click();
    await expect(chat.message("You said: hello")).toBeVisible();
    await expect(alert).toHaveCount(0);
});

test("each agent's messages have its name", async ({ serve, chat, page }) => {
    const heddle = await serve();
    await assistant(heddle, "Clerk");
    await chat.open(heddle);
    await chat.ask("hello", "You said: hello");
    await chat.ask("@Clerk good morning", "You said: good morning");
    await expect(page.getByRole("article", { name: "Clerk" })).toContainText(
        "You said: good morning",
    );
    await expect(page.getByRole("article", { name: "agent" })).toContainText("You said: hello");
    await expect(page.getByRole("article", { name: "You" })).toHaveText([/to agent/, /to Clerk/]);
});
