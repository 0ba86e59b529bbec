// Rooms: several people and agents in one conversation.
import { readFileSync } from "node:fs";
import type { Browser, Locator, Page } from "@playwright/test";
import {
    conversation,
    expect,
    expectNoViolations,
    FAILED_REQUEST,
    shot,
    test,
    type Heddle,
    type Script,
    type Serve,
    type ServeOptions,
} from "../lib";
import { paste } from "../lib/signing";
import { watchContext } from "../lib/watch";
import { pieces, words } from "../lib/words";

const SCRIPT: Script = {
    rules: [
        {
            when: { user: "weather", tool: "weather", tool_results: false },
            tool_calls: [{ name: "weather", args: { city: "Bern" } }],
        },
        { when: { user: "weather", tool_results: true }, content: "It is **sunny** in Bern." },
        { when: { user: "pack" }, content: "Shoes, a towel and a *hat*." },
        { when: { user: "Saturday" }, content: "Then come on Saturday." },
        { when: { user: "Sunday" }, content: "Then come on Sunday." },
        { content: "Noted." },
    ],
};

interface Stage {
    heddle: Heddle;
    thread: string;
    alice: string;
    bob: string;
    /** Alice's page. */
    page: Page;
    /** Bob's page, in a browser of his own. */
    guest: Page;
    close(): Promise<void>;
}

const composer = (page: Page) => page.getByRole("textbox", { name: "Message" });
const log = (page: Page) => page.getByRole("log", { name: "Messages" });
/** A chat message, by its text. */
const said = (page: Page, text: string | RegExp): Locator =>
    log(page).getByRole("article").filter({ hasText: text });

async function say(page: Page, text: string) {
    await composer(page).fill(text);
    await page.getByRole("button", { name: "Send", exact: true }).click();
}

async function enter(page: Page, heddle: Heddle, thread: string, token: string) {
    await page.goto(`${heddle.url}/#/t/${thread}`);
    await paste(page, token);
    await expect(composer(page)).toBeEnabled();
}

interface RoomOptions extends ServeOptions {
    /** Members of the room. */
    settings?: object;
    /** The configuration of the agent Guide. */
    guide?: object;
}

/** A room of Alice, with Bob and the agents Guide, who answers by default, and Packer. */
async function openRoom(
    serve: Serve,
    page: Page,
    browser: Browser,
    { settings = {}, guide: guideTools = {}, ...options }: RoomOptions = {},
): Promise<Stage> {
    const heddle = await serve({ auth: true, script: SCRIPT, ...options });
    const [alice, bob] = [heddle.key("alice"), heddle.key("bob")];
    const make = async (name: string, more: object = {}) => {
        const made = await heddle.client(alice).assistants.create({
            graphId: "agent",
            name,
            config: { configurable: { ...more } },
        });
        return made.assistant_id;
    };
    const [guide, packer] = [await make("Guide", guideTools), await make("Packer")];
    const { thread_id: thread } = await heddle
        .client(alice)
        .threads.create({ metadata: { title: "A trip to Bern" } });
    const asAlice = { token: alice };
    await heddle.ask(
        "PUT",
        `/threads/${thread}/room`,
        {
            default_assistant_id: guide,
            agents: [
                { assistant_id: guide, name: "Guide" },
                { assistant_id: packer, name: "Packer" },
            ],
            ...settings,
        },
        asAlice,
    );
    const guestOf = { issuer: "key", subject: "bob", role: "editor" };
    await heddle.ask("POST", `/threads/${thread}/participants`, guestOf, asAlice);
    const context = await browser.newContext();
    const watch = watchContext(context);
    watch.allow(FAILED_REQUEST); // before signing in
    const guest = await context.newPage();
    await enter(page, heddle, thread, alice);
    await enter(guest, heddle, thread, bob);
    const close = async () => {
        await context.close();
        expect(watch.complaints(), "the manners of the guest's page").toEqual([]);
    };
    return { heddle, thread, alice, bob, page, guest, close };
}

test("two people and two agents talk in one room", async ({ serve, page, browser }) => {
    const stage = await openRoom(serve, page, browser);
    const { guest } = stage;

    await say(page, "Hello everybody, when shall we go?");
    await expect(said(guest, "Hello everybody").first()).toHaveAccessibleName("alice");
    await expect(said(page, "Hello everybody").first()).toHaveAccessibleName("You");
    await expect(said(guest, "Noted.")).toHaveAccessibleName("Guide");

    // Several agents in one message, completed by "@".
    await composer(guest).pressSequentially("@pa");
    const names = guest.getByRole("listbox", { name: "People and agents" });
    await expect(names.getByRole("option", { name: /Packer/ })).toBeVisible();
    await guest.keyboard.press("Enter");
    await composer(guest).pressSequentially("and @gui");
    await guest.keyboard.press("Tab");
    await composer(guest).pressSequentially("what shall we pack?");
    await expect(composer(guest)).toHaveValue("@Packer and @Guide what shall we pack?");
    await expect(guest.locator("[data-asked]")).toContainText("Packer");
    await expect(guest.locator("[data-asked]")).toContainText("Guide");
    await guest.getByRole("button", { name: "Send", exact: true }).click();
    await expect(said(page, "Shoes, a towel")).toHaveCount(2);
    await expect(said(page, "what shall we pack").first()).toHaveAccessibleName("bob");

    await expectNoViolations(page);
    await stage.close();
});

test("a reply asks the agent of the message, and quotes it", async ({ serve, page, browser }) => {
    const stage = await openRoom(serve, page, browser);
    await say(page, "@Packer what do I pack?");
    await expect(said(page, "Shoes, a towel")).toBeVisible();
    await say(page, "Thank you all");
    await expect(said(page, "Noted.")).toBeVisible();
    const answer = said(page, "Shoes, a towel");
    await answer.hover();
    await answer.getByRole("button", { name: "Reply" }).click();
    await expect(page.getByText(/^Reply to Packer/)).toBeVisible();
    await expect(page.locator("[data-asked]")).toContainText("Packer");
    await say(page, "And on Sunday?");
    await expect(said(stage.guest, "Then come on Sunday.")).toHaveAccessibleName("Packer");
    await expect(said(stage.guest, "And on Sunday?").first()).toContainText("Packer Shoes");
    await stage.close();
});

test("readers see who is here, who types, and what is new", async ({ serve, page, browser }) => {
    const stage = await openRoom(serve, page, browser);
    const { guest, heddle, thread } = stage;
    await expect(page.getByRole("img", { name: "Here now: bob" })).toBeVisible();
    await composer(guest).pressSequentially("I am");
    await expect(page.getByText("bob is typing…")).toBeVisible();
    await expect(page.getByText("bob is typing…")).toBeHidden();

    // Alice leaves; Bob mentions her; a mark shows where she has read to.
    await page.goto(`${heddle.url}/#/agents`);
    await expect(guest.getByRole("img", { name: /^Here now/ })).toBeHidden();
    await composer(guest).fill("");
    await say(guest, "@alice look at this");
    await expect(said(guest, "look at this")).toBeVisible();
    const link = page.getByRole("link", { name: /A trip to Bern.*1 new/ });
    await page.reload();
    await expect(link).toBeVisible();

    await page.getByRole("link", { name: "Mentions" }).click();
    await expect(page.getByRole("heading", { name: "Mentions" })).toBeVisible();
    await expectNoViolations(page);
    await page.getByRole("link", { name: /bob.*look at this/ }).click();
    await expect(said(page, "look at this")).toHaveAttribute("data-target");
    await expect(log(page).getByText("New", { exact: true })).toBeVisible();
    expect(page.url()).toContain(`/#/t/${thread}?message=`);
    await expect(guest.getByText("Read by alice")).toBeVisible();
    await expect(link).toBeHidden();
    await stage.close();
});

test("an answer streams to both, and continues after a reload", async ({
    serve,
    page,
    browser,
    pace,
}) => {
    const paced = await pace(pieces(60), 40);
    const stage = await openRoom(serve, page, browser, { env: paced.env });
    const { guest } = stage;
    await say(page, "Please count");
    for (const reader of [page, guest]) {
        await expect(reader.getByText("is writing…")).toBeVisible();
        await expect(said(reader, /\bw20\b/)).toBeVisible();
    }
    await guest.reload();
    await expect(said(guest, /w1 w2 w3 .*w20/)).toBeVisible();
    paced.finish();
    for (const reader of [page, guest]) {
        await expect(said(reader, words(60))).toHaveCount(1);
        await expect(reader.getByText("is writing…")).toBeHidden();
    }
    await stage.close();
});

test("messages are found, linked to, rated, deleted and exported", async ({
    serve,
    page,
    browser,
}) => {
    const stage = await openRoom(serve, page, browser);
    const { guest } = stage;
    await say(page, "What do I pack?");
    const answer = said(page, "Shoes, a towel");
    await expect(answer).toBeVisible();
    await answer.hover();
    const thumb = answer.getByRole("button", { name: "Good answer" });
    await thumb.click();
    await expect(thumb).toHaveAttribute("aria-pressed", "true");

    await guest.getByRole("button", { name: "Search", exact: true }).click();
    await guest.getByLabel("Search in this room").fill("TOWEL");
    await expect(guest.getByText("1 found")).toBeVisible();
    await expectNoViolations(guest);
    await guest.getByRole("button", { name: /^Guide/ }).click();
    await expect(said(guest, "Shoes, a towel")).toHaveAttribute("data-target");

    const [file] = await Promise.all([
        guest.waitForEvent("download"),
        (async () => {
            await guest.getByRole("button", { name: "Conversation menu" }).click();
            await guest.getByRole("menuitem", { name: "Export as Markdown" }).click();
        })(),
    ]);
    expect(file.suggestedFilename()).toBe("a-trip-to-bern.md");
    expect(readFileSync(await file.path(), "utf8")).toMatch(
        /^# A trip to Bern\n\n## alice · .*\n\nWhat do I pack\?\n\n## Guide · .*\n\nShoes/,
    );

    const own = said(page, "What do I pack?");
    await own.hover();
    await own.getByRole("button", { name: "Actions for this message" }).click();
    await page.getByRole("menuitem", { name: "Delete" }).click();
    await page.getByRole("dialog").getByRole("button", { name: "Delete" }).click();
    await expect(said(guest, "This message was deleted.")).toBeVisible();
    await stage.close();
});

test("a question is answered in place", async ({ serve, page, browser, weather }) => {
    const stage = await openRoom(serve, page, browser, {
        guide: { http_tools: [weather.tool], approval: ["weather"] },
    });
    const { guest } = stage;
    await say(page, "How is the weather?");
    const asked = page.getByRole("region", { name: "Requests from Guide" });
    await expect(asked.getByText("weather", { exact: true })).toBeVisible();
    await expect(guest.getByRole("region", { name: "Requests from Guide" })).toBeVisible();
    await expectNoViolations(page);
    await asked.getByRole("button", { name: "Accept" }).click();
    await expect(said(page, "It is sunny in Bern.")).toBeVisible();
    await expect(asked).toBeHidden();
    await expect(said(guest, "Accepted weather")).toBeVisible();

    // The inner steps fold open from the answer.
    const answer = said(guest, "It is sunny in Bern.");
    await answer.getByText("Steps").click();
    await expect(answer.getByText("weather", { exact: true })).toBeVisible();
    await answer.getByRole("link", { name: "Open the agent’s own conversation" }).click();
    await expect(guest.getByRole("navigation", { name: "Panels" })).toContainText("Branches");
    await expect(
        guest.getByRole("article", { name: "alice" }).filter({ hasText: "How is the weather?" }),
    ).toBeVisible();
    await guest.getByRole("button", { name: "Conversation menu" }).click();
    await guest.getByRole("menuitem", { name: "Back to the room" }).click();
    await expect(said(guest, "Accepted weather")).toBeVisible();
    await stage.close();
});

test("a conversation becomes a room, and a room begins empty", async ({ heddle, page, chat }) => {
    const thread = await conversation(heddle, ["hello"], { title: "Ours" });
    await chat.open(heddle, thread);
    await page.getByRole("button", { name: "Conversation menu" }).click();
    await page.getByRole("menuitem", { name: "Start a room" }).click();
    await expect(page.getByRole("heading", { name: "This room is empty" })).toBeVisible();
    await page.reload();
    await expect(page.getByRole("heading", { name: "This room is empty" })).toBeVisible();
    await say(page, "one more");
    await expect(said(page, "You said: one more")).toBeVisible();

    await page.getByRole("button", { name: "New conversation" }).click();
    await page.getByRole("button", { name: /^Start a room/ }).click();
    await expect(page.getByRole("heading", { name: "New room", level: 1 })).toBeVisible();
    await page.getByRole("button", { name: "Conversation menu" }).click();
    await page.getByRole("menuitem", { name: "Room settings" }).click();
    const dialog = page.getByRole("dialog", { name: "Room settings" });
    await expectNoViolations(page);
    await dialog.getByLabel("Default agent").selectOption("");
    await dialog.getByRole("button", { name: "Save" }).click();
    await expect(dialog).toBeHidden();
    await say(page, "to nobody");
    await expect(said(page, "to nobody")).toBeVisible();
    await expect(page.locator("[data-asked]")).toBeHidden();
});

const answering = (page: Page) => page.getByRole("region", { name: "Answering again" });

async function edit(page: Page, from: string, to: string) {
    const message = said(page, from);
    await message.hover();
    await message.getByRole("button", { name: "Edit" }).click();
    const editor = page.getByRole("textbox", { name: "Edited message" });
    await expect(editor).toBeFocused();
    await editor.fill(to);
    await page.keyboard.press("Enter");
}

test("an edit shows its plan, waits for an approval, and can be undone", async ({
    serve,
    page,
    browser,
}) => {
    const stage = await openRoom(serve, page, browser, { settings: { cascade: { limit: 0 } } });
    const { guest } = stage;
    await say(page, "See you on Saturday");
    await expect(said(page, "Then come on Saturday.")).toBeVisible();
    await say(guest, "@Packer what do I pack?");
    await expect(said(page, "Shoes, a towel")).toBeVisible();

    await edit(page, "See you on Saturday", "See you on Sunday");
    const plan = page.getByRole("dialog", { name: "What follows from this edit" });
    await expect(plan.getByText("2 answers are made again.")).toBeVisible();
    const steps = plan.getByRole("list", { name: "Answers to make again" }).getByRole("listitem");
    await expect(steps).toHaveCount(2);
    await expect(steps.first()).toContainText("Guide: Then come on Saturday.");
    await expect(steps.last()).toContainText("Needs approval");
    await expectNoViolations(page);
    await plan.getByRole("button", { name: "Save and answer again" }).click();

    // Until the approval all readers see the old answers.
    await expect(answering(guest).getByText(/1 of 2 ready/)).toBeVisible();
    await expect(said(guest, "See you on Sunday")).toContainText("edited");
    await expect(said(guest, "Then come on Saturday.")).toContainText("The new answer is ready");
    await expect(said(guest, "Shoes, a towel")).toContainText("Waits for approval");
    await expectNoViolations(guest);
    await answering(guest).getByRole("button", { name: "Approve" }).click();
    const old = said(guest, "Then come on Saturday.");
    await expect(old).toContainText("Out of date");
    await expect(said(page, "Then come on Sunday.")).toContainText("Replaces an earlier answer");
    await expectNoViolations(page);
    await old.getByRole("button", { name: "Go to the newer one" }).click();
    await expect(said(guest, "Then come on Sunday.")).toHaveAttribute("data-target");

    await answering(page).getByRole("button", { name: "Undo" }).click();
    await expect(said(page, "Then come on Sunday.")).toContainText("Out of date");
    await expect(said(page, "Then come on Saturday.")).not.toContainText("Out of date");
    await stage.close();
});

test("an edit without new answers makes the old ones out of date", async ({
    serve,
    page,
    browser,
}) => {
    const stage = await openRoom(serve, page, browser);
    await say(page, "See you on Saturday");
    await expect(said(page, "Then come on Saturday.")).toBeVisible();
    await edit(page, "See you on Saturday", "See you on Sunday");
    await page.getByRole("button", { name: "Only change the text" }).click();
    await expect(said(stage.guest, "Then come on Saturday.")).toContainText("Out of date");
    await expect(said(stage.guest, "See you on Sunday")).toBeVisible();
    await stage.close();
});

test("an answer is made again, and a conversation continues elsewhere", async ({
    serve,
    page,
    browser,
}) => {
    const stage = await openRoom(serve, page, browser);
    const { guest } = stage;
    await say(page, "See you on Saturday");
    const answer = said(guest, "Then come on Saturday.");
    await expect(answer).toBeVisible();
    await answer.getByRole("button", { name: "Actions for this message" }).click();
    await guest.getByRole("menuitem", { name: "Regenerate" }).click();
    const dialog = guest.getByRole("dialog", { name: "Make this answer again?" });
    await expect(dialog.getByText("1 answer is made again.")).toBeVisible();
    await dialog.getByRole("button", { name: "Answer again" }).click();
    await expect(answering(page).getByText("1 answer made again")).toBeVisible();
    await say(page, "What do I pack?");
    await expect(said(guest, "Shoes, a towel")).toBeVisible();

    await answer.hover();
    await answer.getByRole("button", { name: "Actions for this message" }).click();
    await guest.getByRole("menuitem", { name: "Continue in a new conversation" }).click();
    await expect(guest).not.toHaveURL(new RegExp(stage.thread));
    await expect(said(guest, "Then come on Saturday.")).toBeVisible();
    await expect(said(guest, "Shoes, a towel")).toBeHidden();
    await say(guest, "Only for me");
    await expect(said(guest, "Only for me")).toBeVisible();
    await expect(said(page, "Only for me")).toBeHidden();
    await stage.close();
});

const TALK: Script = {
    rules: [
        {
            when: { user: "weather", tool: "weather", tool_results: false },
            tool_calls: [{ name: "weather", args: { city: "Bern" } }],
        },
        {
            when: { user: "train" },
            content:
                "Two trains fit:\n\n| train | leaves | arrives |\n|---|---|---|\n| direct | 8:02 | 9:30 |\n| by Olten | 8:34 | 10:14 |\n\nI would take the **8:02**.",
        },
        {
            when: { user: "pack" },
            content: "- shoes for walking\n- a towel, the Aare is close\n- something warm",
        },
        { content: "Noted." },
    ],
};

for (const [colorScheme, viewport, size] of [
    ["light", { width: 1280, height: 800 }, "wide"],
    ["dark", { width: 390, height: 780 }, "narrow"],
] as const) {
    test.describe(() => {
        test.use({ colorScheme, viewport });
        test(`pictures of a room, ${colorScheme}, ${size}`, async ({
            serve,
            page,
            browser,
            weather,
        }) => {
            const stage = await openRoom(serve, page, browser, {
                script: TALK,
                guide: { http_tools: [weather.tool], approval: ["weather"] },
                settings: { cascade: { limit: 0 } },
            });
            const { guest } = stage;
            await say(page, "Shall we go to Bern on Saturday? Which train is best?");
            await expect(said(page, "Two trains fit")).toBeVisible();
            await say(guest, "The early one is fine for me. @Packer what do I pack?");
            await expect(said(page, "shoes for walking")).toBeVisible();
            await say(page, "@Guide how will the weather be?");
            await expect(page.getByRole("region", { name: /^Requests/ })).toBeVisible();
            await composer(guest).pressSequentially("I will bring", { delay: 250 });
            await expect(page.getByText("bob is typing…")).toBeVisible();
            await expectFits(page);
            await shot(page, `room-${colorScheme}-${size}`);
            await page.getByRole("button", { name: "People" }).click();
            await expectFits(page);
            await expectNoViolations(page);
            await page.emulateMedia({ colorScheme });
            await page.getByRole("button", { name: "Close people" }).click();
            await page.getByRole("button", { name: "Accept" }).click();
            await edit(page, "Which train is best", "Shall we go on Sunday? Which train is best?");
            await expect(page.getByRole("dialog")).toBeVisible();
            await expectFits(page);
            await expectNoViolations(page);
            await page.emulateMedia({ colorScheme });
            await page.getByRole("button", { name: "Save and answer again" }).click();
            await expect(answering(page).getByRole("button", { name: "Approve" })).toBeVisible();
            await expectFits(page);
            await expectNoViolations(page);
            await page.emulateMedia({ colorScheme });
            await shot(page, `edit-${colorScheme}-${size}`);
            await stage.close();
        });
    });
}

/** Nothing overflows sideways. */
async function expectFits(page: Page) {
    const width = await page.evaluate(() => document.documentElement.scrollWidth);
    expect(width).toBe(page.viewportSize()?.width);
}
