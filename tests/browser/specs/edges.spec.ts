// Fast users, small windows and unusual servers.
import { assistant, conversation, expect, FAILED_REQUEST, fork, test } from "../lib";
import { hold } from "../lib/hold";
import { holdNotices } from "../lib/notices";

const THREADS = /\/threads$/;

test("the page works without browser storage", async ({ heddle, chat, page }) => {
    await page.addInitScript(() => {
        for (const name of ["localStorage", "sessionStorage"])
            Object.defineProperty(window, name, {
                get() {
                    throw new DOMException("denied", "SecurityError");
                },
            });
    });
    await chat.open(heddle);
    await chat.ask("hello", "You said: hello");
});

test("navigation while a thread is being created is kept", async ({ serve, chat, page }) => {
    const heddle = await serve();
    await conversation(heddle, ["hi"], { title: "The other one" });
    await chat.open(heddle);
    const making = await hold(page, THREADS, "POST");
    await chat.say("hello");
    await expect.poll(making.held).toBe(1);
    await page.getByRole("link", { name: /The other one/ }).click();
    await expect(chat.message("You said: hi")).toBeVisible();
    const there = page.url();
    making.letGo();
    // Sent messages are sent anyway.
    const made = page.getByRole("link", { name: /hello/ });
    await expect(made).toBeVisible();
    expect(page.url()).toBe(there);
    await made.click();
    await expect(chat.message("You said: hello")).toBeVisible();
});

test("a conversation that just started is found again", async ({ serve, chat, page }) => {
    const heddle = await serve();
    await conversation(heddle, ["hi"], { title: "The other one" });
    await chat.open(heddle);
    await chat.ask("hello", "You said: hello");
    await page.getByRole("link", { name: /The other one/ }).click();
    await expect(chat.message("You said: hi")).toBeVisible();
    await page.goBack();
    await expect(chat.message("You said: hello")).toBeVisible();
});

test("stop works before the run exists", async ({ serve, chat, page }) => {
    const heddle = await serve();
    await chat.open(heddle);
    const making = await hold(page, THREADS, "POST");
    await chat.say(`slowly ${"and on ".repeat(100)}`);
    await expect.poll(making.held).toBe(1);
    await chat.stop.click();
    making.letGo();
    await expect(page.getByText("Stopped").first()).toBeVisible();
    await chat.idle();
});

test("two unsent messages return together, above the draft", async ({
    heddle,
    chat,
    page,
    watch,
}) => {
    watch.allow(FAILED_REQUEST, /no chat today/);
    await chat.open(heddle, await conversation(heddle, ["hi"]));
    await page.route(/\/runs\/stream$/, (route) =>
        route.fulfill({ status: 503, json: { detail: "no chat today" } }),
    );
    for (const text of ["one", "two"]) {
        await chat.say(text);
        await expect(chat.message(text).getByText("Not sent.")).toBeVisible();
    }
    await chat.composer.fill("three");
    await page.getByRole("button", { name: "Back to the editor" }).first().click();
    await expect(chat.composer).toHaveValue("one\n\ntwo\n\nthree");
});

test("unsent messages are kept after leaving and returning", async ({
    serve,
    chat,
    page,
    watch,
}) => {
    const heddle = await serve();
    watch.allow(FAILED_REQUEST, /no chat today/);
    await conversation(heddle, ["hi"], { title: "The other one" });
    const thread = await conversation(heddle, ["hello"], { title: "This one" });
    await chat.open(heddle, thread);
    await page.route(/\/runs\/stream$/, (route) =>
        route.fulfill({ status: 503, json: { detail: "no chat today" } }),
    );
    await chat.say("do not lose me");
    await expect(page.getByText("Not sent.")).toBeVisible();
    await page.getByRole("link", { name: /The other one/ }).click();
    await expect(chat.message("You said: hi")).toBeVisible();
    await page.getByRole("link", { name: /This one/ }).click();
    await expect(chat.message("You said: hello")).toBeVisible();
    await expect(chat.composer).toHaveValue("do not lose me");
});

test("a message sent while the latest branch loads goes there", async ({ serve, chat, page }) => {
    const heddle = await serve();
    const thread = await conversation(heddle, ["one"]);
    await fork(heddle, thread, "one", "two");
    await chat.open(heddle, thread);
    await expect(chat.message("You said: two")).toBeVisible();
    await page.getByRole("button", { name: "Previous branch" }).click();
    await expect(chat.message("You said: one")).toBeVisible();
    const reading = await hold(page, /\/threads\/[^/]+\/state(\?|$)/);
    await page.getByRole("button", { name: "Next branch" }).click();
    await expect.poll(reading.held).toBeGreaterThan(0);
    await chat.say("three");
    reading.letGo();
    await expect(chat.message("You said: three")).toBeVisible();
    await chat.idle();
    await expect(chat.message("You said: two")).toBeVisible();
    await expect(chat.message("You said: one")).toBeHidden();
});

test("a message of another client before the event stream opens is shown", async ({
    serve,
    chat,
    page,
}) => {
    const heddle = await serve();
    const thread = await conversation(heddle, ["one"]);
    const listening = await hold(page, /\/threads\/[^/]+\/stream(\?|$)/);
    const looked = page.waitForResponse(/\/threads\/[^/]+\/runs(\?|$)/);
    await chat.open(heddle, thread);
    await expect(chat.message("You said: one")).toBeVisible();
    await looked;
    await fork(heddle, thread, "one", "two");
    listening.letGo();
    await expect(chat.message("You said: two")).toBeVisible();
});

test("the first message to another agent is shown at once", async ({
    serve,
    chat,
    page,
    watch,
}) => {
    watch.allow(FAILED_REQUEST);
    const heddle = await serve();
    await assistant(heddle, "Bob");
    await chat.open(heddle, await conversation(heddle, ["hi"]));
    await expect(chat.message("You said: hi")).toBeVisible();
    const reading = await hold(page, /\/threads\/[^/]+\/(state|messages)(\?|$)/);
    await chat.composer.fill("@Bob hello there");
    await page.keyboard.press("Escape");
    await chat.send.click();
    await expect(chat.message("hello there").first()).toBeVisible();
    await expect(chat.message("You said: hello there")).toBeVisible();
    reading.letGo();
    await chat.idle();
});

test("the page reports a denied clipboard", async ({ heddle, chat, page }) => {
    await page.addInitScript(() =>
        Object.defineProperty(navigator, "clipboard", { value: undefined }),
    );
    await holdNotices(page);
    await chat.open(heddle);
    await chat.ask("hello", "You said: hello");
    await page.getByRole("button", { name: "Copy answer" }).click();
    await expect(page.getByText("Copied", { exact: true })).toBeAttached();
    await chat.composer.focus();
    await page.keyboard.press("Control+v");
    await expect(chat.composer).toHaveValue("You said: hello");
});

test("signing out of a remembered session affects every tab", async ({
    serve,
    page,
    context,
    watch,
}) => {
    const heddle = await serve({ auth: true });
    watch.allow(FAILED_REQUEST);
    await page.goto(heddle.url);
    await page.getByLabel("Token or API key").fill(heddle.key("alice"));
    await page.getByLabel(/Keep me signed in/).check();
    await page.getByRole("button", { name: "Sign in", exact: true }).click();
    const composer = page.getByLabel("Message", { exact: true });
    await expect(composer).toBeVisible();
    const other = await context.newPage();
    await other.goto(heddle.url);
    await expect(other.getByLabel("Message", { exact: true })).toBeVisible();
    await composer.fill("a secret draft");
    await other.getByRole("button", { name: "Sign out" }).click();
    await expect(other.getByLabel("Token or API key")).toBeVisible();
    await expect(page.getByLabel("Token or API key")).toBeVisible();
    expect(await page.evaluate(() => JSON.stringify({ ...sessionStorage }))).toBe("{}");
});

const RTL = "שלום, מה שלומך? (בסדר)";

test("right-to-left text is shown right to left", async ({ serve, chat, page }) => {
    const content = `${RTL}\n\n- ${RTL}\n\n> ${RTL}\n\n| ${RTL} | b |\n|---|---|\n| 1 | 2 |\n\n- left`;
    const heddle = await serve({ script: { rules: [{ content }] } });
    await chat.open(heddle);
    await chat.composer.fill(RTL);
    expect(await chat.composer.evaluate((area) => getComputedStyle(area).direction)).toBe("rtl");
    await chat.ask(RTL, RTL);
    for (const text of await chat.messages.getByText(RTL).all())
        expect(await text.evaluate((one) => getComputedStyle(one).unicodeBidi)).toBe("plaintext");
    // List markers, the bar of a quotation and the first column are at the right too.
    for (const part of ["ul", "blockquote", "table"])
        await expect(chat.messages.locator(part).first()).toHaveCSS("direction", "rtl");
    await expect(chat.messages.locator("ul").last()).toHaveCSS("direction", "ltr");
    await expect(page.getByRole("heading", { level: 1 })).toHaveCSS("direction", "rtl");
});

test("320 pixels are enough for any message", async ({ serve, chat, page }) => {
    const word = "Donaudampfschifffahrt".repeat(20);
    const script = {
        rules: [
            {
                content: `# ${word}\n\n${word} \`${word}\`\n\n| ${word} | b |\n|--|--|\n| 1 | 2 |\n\n- - - - ${word}\n\n> > > ${word}\n\n\`\`\`c\n${word}\n\`\`\`\n\nhttps://example.org/${word}`,
            },
        ],
    };
    const heddle = await serve({ script });
    const bob = await assistant(heddle, `Bob ${word}`.slice(0, 200));
    const thread = await conversation(heddle, [word], { title: word });
    await conversation(heddle, ["x"], { title: word, assistant: bob });
    await fork(heddle, thread, word);
    await page.setViewportSize({ width: 320, height: 568 });
    await chat.open(heddle, thread);
    await expect(chat.message(word).first()).toBeVisible();
    await chat.say(`@Bob ${word}`);
    await expect(chat.messages).toHaveCount(4);
    await chat.idle();
    const width = () =>
        page.evaluate(() =>
            Math.max(
                document.documentElement.scrollWidth,
                document.querySelector("[role=log]")!.scrollWidth,
            ),
        );
    expect(await width()).toBeLessThanOrEqual(320);
    for (const name of ["Branches", "State", "Graph"]) {
        await page.getByRole("button", { name, exact: true }).click();
        await expect(page.getByRole("heading", { name, exact: true })).toBeVisible();
        expect(await width(), name).toBeLessThanOrEqual(320);
        await page.keyboard.press("Escape");
    }
});

for (const [name, config] of Object.entries({
    "names no namespaces": { namespaces: { show: false } },
    "ends streams without saying so": { stream: { end_event: false } },
    "has a prefix": { http: { mount_prefix: "/here" } },
})) {
    test(`a server that ${name}`, async ({ serve, chat, page }) => {
        const isPlain = !("http" in config);
        const heddle = await serve({ config, page: isPlain ? undefined : "" });
        const bob = isPlain && (await assistant(heddle, "Bob"));
        await page.goto(isPlain ? heddle.url : `${heddle.url}/here`);
        await chat.ask("hello", "You said: hello");
        await chat.ask("again", "You said: again");
        await page.getByRole("button", { name: "Retry" }).first().click();
        await expect(page.getByRole("group", { name: "Branch 2 of 2" })).toBeVisible();
        await chat.idle();
        await expect(chat.message("You said: again")).toBeHidden();
        await page.reload();
        await page.getByRole("button", { name: "Previous branch" }).click();
        await expect(chat.message("You said: again")).toBeVisible();
        if (!bob) return;
        await chat.composer.fill("@Bob hello there");
        await page.keyboard.press("Escape");
        await chat.send.click();
        await expect(chat.message("You said: hello there")).toBeVisible();
        await chat.idle();
        await page.getByRole("button", { name: "Retry" }).last().click();
        await expect(page.getByRole("group", { name: "Branch 2 of 2" })).toHaveCount(1);
    });
}
