// Human in the loop: the requests of an agent, and every kind of reply.
import { join } from "node:path";
import type { Page, Request } from "@playwright/test";
import {
    assistant,
    expect,
    expectNoViolations,
    shot,
    test,
    waitFor,
    FAILED_REQUEST,
    type Heddle,
    type Chat,
    type Weather,
} from "../lib";
import { hold } from "../lib/hold";
import { newFolder, writeJson } from "../lib/programs";

const question = (page: Page, text: string | RegExp) =>
    page
        .getByRole("group")
        .filter({ has: page.getByRole("heading", { level: 2 }) })
        .filter({ hasText: text });
const button = (page: Page, name: string) => page.getByRole("button", { name, exact: true });

let agents = 0;

/** An agent that needs approval for the weather tool. */
async function careful(
    heddle: Heddle,
    weather: Weather,
    approval: unknown = true,
): Promise<string> {
    return assistant(heddle, `Careful ${++agents}`, {
        http_tools: [weather.tool],
        approval,
    });
}

/** Opens a conversation in which this agent was sent `text`. */
async function asked(heddle: Heddle, chat: Chat, agent: string, text: string): Promise<string> {
    const client = heddle.client();
    const { thread_id: thread } = await client.threads.create();
    await client.runs.wait(thread, agent, {
        input: { messages: [{ type: "human", content: text }] },
    });
    await chat.open(heddle, thread);
    return thread;
}

const use = (...cities: string[]) =>
    cities.map((city) => `use weather with {"city": "${city}"}`).join(" and ");

type Resume = { command?: { resume?: Record<string, unknown> } };

/** Records the replies that the page sends. */
function answersOf(page: Page): Record<string, unknown>[] {
    const sent: Record<string, unknown>[] = [];
    page.on("request", (request: Request) => {
        if (request.method() !== "POST" || !request.url().endsWith("/runs/stream")) return;
        const { command } = request.postDataJSON() as Resume;
        if (command?.resume) sent.push(command.resume);
    });
    return sent;
}

test("a call is shown, survives a reload, and is made when it is accepted", async ({
    heddle,
    chat,
    page,
    weather,
}) => {
    const agent = await careful(heddle, weather);
    await chat.open(heddle);
    await page.goto(`${heddle.url}/#/?agent=${agent}`);
    await expect(page.getByRole("button", { name: /^Agent: Careful/ })).toBeVisible();
    await chat.say(use("Paris"));
    const card = question(page, "weather");
    await expect(card).toContainText("wants to use weather");
    await expect(card.getByRole("row", { name: "city" })).toContainText("Paris");
    // The focus moved to it, because no text was being written.
    await expect(card.getByRole("heading", { level: 2 })).toBeFocused();
    await expectNoViolations(page);
    await chat.thread();
    await page.reload();
    await expect(card).toBeVisible();
    expect(weather.cities).toEqual([]);
    await card.getByRole("button", { name: "Accept" }).click();
    await expect(chat.message("The tools said: sunny in Paris")).toBeVisible();
    await expect(card).toBeHidden();
    expect(weather.cities).toEqual(["Paris"]);
});

test("on a phone the icon of a request stays beside its text", async ({
    heddle,
    chat,
    page,
    weather,
}) => {
    await page.setViewportSize({ width: 320, height: 640 });
    await asked(heddle, chat, await careful(heddle, weather), use("Paris"));
    const title = question(page, "weather").getByRole("heading", { level: 2 });
    const words = (await title.boundingBox())!;
    const mark = (await title.locator("xpath=preceding-sibling::*").boundingBox())!;
    expect(mark.x + mark.width).toBeLessThanOrEqual(words.x);
    expect(mark.y + mark.height).toBeGreaterThan(words.y);
});

test("arguments are edited in a form that validates them", async ({
    heddle,
    chat,
    page,
    weather,
}) => {
    const tool = {
        ...weather.tool,
        parameters: {
            type: "object",
            properties: {
                city: { type: "string" },
                days: { type: "integer" },
                exact: { type: "boolean" },
                extra: {},
            },
        },
    };
    const agent = await assistant(heddle, "Editor", { http_tools: [tool], approval: true });
    const sent = answersOf(page);
    await asked(
        heddle,
        chat,
        agent,
        'use weather with {"city": "Paris", "days": 3, "exact": true, "extra": {"a": [1]}}',
    );
    const card = question(page, "weather");
    await card.getByRole("button", { name: "Edit" }).click();
    await expect(card.getByLabel("city")).toBeFocused();
    await card.getByLabel("city").fill("Rome");
    await card.getByLabel("days").fill("many");
    await card.getByLabel("exact").uncheck();
    await card.getByLabel("extra").fill('{"b": 2}');
    await card.getByRole("button", { name: "Accept with changes" }).click();
    await expect(card.getByText("Enter a number.")).toBeVisible();
    await expect(card.getByLabel("days")).toBeFocused();
    await expectNoViolations(page);
    await card.getByLabel("days").fill("5");
    await card.getByRole("button", { name: "Accept with changes" }).click();
    await expect(chat.message("The tools said: sunny in Rome")).toBeVisible();
    expect(Object.values(sent[0]!)).toEqual([
        [
            {
                type: "edit",
                args: {
                    action: "weather",
                    args: { city: "Rome", days: 5, exact: false, extra: { b: 2 } },
                },
            },
        ],
    ]);
    expect(weather.cities).toEqual(["Rome"]);
});

test("a response replaces the tool result, and a call can be ignored", async ({
    heddle,
    chat,
    page,
    weather,
}) => {
    const agent = await careful(heddle, weather);
    await asked(heddle, chat, agent, use("Paris"));
    const card = question(page, "weather");
    await card.getByRole("button", { name: "Respond" }).click();
    // Escape returns to the earlier focus.
    await page.keyboard.press("Escape");
    await expect(card.getByRole("button", { name: "Respond" })).toBeFocused();
    await page.keyboard.press("Enter");
    await page.keyboard.type("rain, I can see it");
    await page.keyboard.press("Control+Enter");
    await expect(chat.message("The tools said: rain, I can see it")).toBeVisible();
    await expect(card).toBeHidden();
    await chat.idle();

    await asked(heddle, chat, agent, use("Oslo"));
    await card.getByRole("button", { name: "Ignore" }).click();
    await expect(chat.message("The tools said:")).toBeVisible();
    await expect(card).toBeHidden();
    expect(weather.cities).toEqual([]);
});

test("only allowed replies are offered, and a rejected reply is reported", async ({
    heddle,
    chat,
    page,
    weather,
}) => {
    const rule = {
        tool: "weather",
        allow: ["accept", "ignore"],
        description: "The weather is expensive.",
    };
    const agent = await careful(heddle, weather, [rule]);
    const thread = await asked(heddle, chat, agent, use("Paris"));
    const card = question(page, "weather");
    await expect(card).toContainText("The weather is expensive.");
    await expect(card.getByRole("button")).toHaveText(["Accept", "Ignore"]);
    // Another client sends a reply that is not allowed: the request is repeated.
    await heddle
        .client()
        .runs.wait(thread, agent, { command: { resume: { type: "response", args: "no" } } });
    await expect(card.getByRole("alert")).toContainText("The last reply was not accepted");
    await card.getByRole("button", { name: "Accept" }).click();
    await expect(chat.message("The tools said: sunny in Paris")).toBeVisible();
});

test("several requests have a card each, and their replies are sent together", async ({
    heddle,
    chat,
    page,
    weather,
}) => {
    const agent = await careful(heddle, weather);
    const sent = answersOf(page);
    await asked(heddle, chat, agent, use("Paris", "Rome", "Oslo"));
    const cards = question(page, "weather");
    await expect(cards).toHaveCount(3);
    await shot(page, "ask-several");
    await question(page, "Paris").getByRole("button", { name: "Accept" }).click();
    await expect(cards.nth(0)).toContainText("Accepted.");
    await expect(page.getByText("1 of 3 answered")).toBeVisible();
    await question(page, "Rome").getByRole("button", { name: "Respond" }).click();
    await page.getByLabel("Your response").fill("storm");
    await button(page, "Send response").click();
    // A choice can be changed until all are made.
    await cards.nth(1).getByRole("button", { name: "Change" }).click();
    await expect(page.getByText("1 of 3 answered")).toBeVisible();
    await expectNoViolations(page);
    expect(weather.cities).toEqual([]);
    await question(page, "Rome").getByRole("button", { name: "Ignore" }).click();
    await question(page, "Oslo").getByRole("button", { name: "Accept" }).click();
    await expect(chat.message("The tools said:")).toContainText("sunny in Oslo");
    expect(sent).toHaveLength(1);
    expect(Object.values(sent[0]!)).toEqual([
        [{ type: "accept", args: null }],
        [{ type: "ignore", args: null }],
        [{ type: "accept", args: null }],
    ]);
    expect(weather.cities.toSorted()).toEqual(["Oslo", "Paris"]);

    await asked(heddle, chat, agent, use("Lima", "Cairo"));
    await button(page, "Accept all").click();
    await expect(chat.message("The tools said:")).toContainText("sunny in Cairo");

    // Some requests may be answered before others.
    await asked(heddle, chat, agent, use("Bonn", "Kyiv"));
    await question(page, "Kyiv").getByRole("button", { name: "Accept" }).click();
    await button(page, "Send 1 now").click();
    await waitFor(() => weather.cities.includes("Kyiv"), "the call that was accepted");
    await expect(cards).toHaveCount(1);
    await question(page, "Bonn").getByRole("button", { name: "Accept" }).click();
    await expect(chat.message("The tools said:")).toContainText("sunny in Bonn");
});

test("a request survives a restart, and another tab sees the answer", async ({
    serve,
    chat,
    page,
    context,
    weather,
    watch,
}) => {
    watch.allow(FAILED_REQUEST);
    const heddle = await serve();
    const agent = await careful(heddle, weather);
    const thread = await asked(heddle, chat, agent, use("Paris"));
    await expect(question(page, "weather")).toBeVisible();
    await heddle.restart("kill");
    await page.reload();
    await expect(question(page, "weather")).toBeVisible();
    const other = await context.newPage();
    await other.goto(`${heddle.url}/#/t/${thread}`);
    await expect(question(other, "weather")).toBeVisible();
    await question(page, "weather").getByRole("button", { name: "Accept" }).click();
    await expect(chat.message("The tools said: sunny in Paris")).toBeVisible();
    await other.bringToFront();
    await expect(question(other, "weather")).toBeHidden();
    await expect(
        other.getByRole("article").filter({ hasText: "The tools said: sunny in Paris" }),
    ).toBeVisible();
    expect(weather.cities).toEqual(["Paris"]);
});

test("text typed during a request is the reply, or a new message", async ({
    heddle,
    chat,
    page,
    weather,
}) => {
    const agent = await careful(heddle, weather);
    const sent = answersOf(page);
    await asked(heddle, chat, agent, use("Paris"));
    await expect(page.getByRole("radio", { name: "Reply" })).toBeChecked();
    await expectNoViolations(page);
    await chat.say("hail");
    await expect(chat.message("The tools said: hail")).toBeVisible();
    expect(Object.values(sent[0]!)).toEqual([[{ type: "response", args: "hail" }]]);

    await asked(heddle, chat, agent, use("Rome"));
    await page.getByRole("radio", { name: "New message (discards the request)" }).check();
    await chat.say("never mind");
    await expect(chat.message("You said: never mind")).toBeVisible();
    await expect(question(page, "weather")).toBeHidden();
    expect(sent).toHaveLength(1);
    expect(weather.cities).toEqual([]);
});

test("a reply that failed to send can be sent again", async ({
    heddle,
    chat,
    page,
    weather,
    watch,
}) => {
    watch.allow(FAILED_REQUEST);
    watch.allow(/ConnectionError/); // logged by the official client
    const agent = await careful(heddle, weather);
    await asked(heddle, chat, agent, use("Paris"));
    await page.route("**/runs/stream", (route) => route.abort(), { times: 1 });
    await question(page, "weather").getByRole("button", { name: "Accept" }).click();
    await expect(page.getByText("1 of 1 answered")).toBeVisible();
    await button(page, "Send again").click();
    await expect(chat.message("The tools said: sunny in Paris")).toBeVisible();
    await expect(question(page, "weather")).toBeHidden();
    expect(weather.cities).toEqual(["Paris"]);
});

test("a request on another branch waits there", async ({ heddle, chat, page, weather }) => {
    const agent = await careful(heddle, weather);
    await asked(heddle, chat, agent, use("Paris"));
    await expect(question(page, "weather")).toBeVisible();
    const you = page.getByRole("article", { name: "You" });
    await you.getByRole("button", { name: "Edit" }).click();
    await page.getByRole("textbox", { name: "Edited message" }).fill("hello");
    await button(page, "Send again").click();
    await expect(chat.message("You said: hello")).toBeVisible();
    await chat.idle();
    await expect(question(page, "weather")).toBeHidden();
    await you.getByRole("button", { name: "Previous branch" }).click();
    await question(page, "weather").getByRole("button", { name: "Accept" }).click();
    await expect(chat.message("The tools said: sunny in Paris")).toBeVisible();
    await you.getByRole("button", { name: "Next branch" }).click();
    await expect(chat.message("You said: hello")).toBeVisible();
    await expect(question(page, "weather")).toBeHidden();
});

test("a request does not take the focus from the composer", async ({
    heddle,
    chat,
    page,
    weather,
}) => {
    const agent = await careful(heddle, weather);
    await page.goto(`${heddle.url}/#/?agent=${agent}`);
    const sending = await hold(page, "**/runs/stream", "POST");
    await chat.say(use("Paris"));
    await chat.composer.fill("I am still");
    sending.letGo();
    await expect(question(page, "weather")).toBeVisible();
    await expect(chat.composer).toBeFocused();
    await expect(
        page.getByRole("status").filter({ hasText: "is waiting for your reply to weather." }),
    ).toHaveCount(1);
});

test("a request is answered by keyboard alone", async ({ heddle, chat, page, weather }) => {
    const agent = await careful(heddle, weather);
    await asked(heddle, chat, agent, use("Paris"));
    await expect(question(page, "weather").getByRole("heading", { level: 2 })).toBeFocused();
    await page.keyboard.press("Tab");
    await expect(button(page, "Accept")).toBeFocused();
    await page.keyboard.press("Tab");
    await expect(question(page, "weather").getByRole("button", { name: "Edit" })).toBeFocused();
    await page.keyboard.press("Enter");
    await expect(page.getByLabel("city")).toBeFocused();
    await page.keyboard.press("ControlOrMeta+a");
    await page.keyboard.type("Rome");
    await page.keyboard.press("Enter");
    await expect(chat.message("The tools said: sunny in Rome")).toBeVisible();
});

// ---- other kinds of requests ---------------------------------------------

/** Interrupts with the user's message, parsed as JSON, and answers with the reply. */
const ASKS = {
    name: "asks",
    state: { messages: { reducer: "messages" } },
    nodes: {
        wonder: {
            kind: "interrupt",
            ask: [{ "@parse": "{{messages[-1].content}}" }],
            update: {
                messages: [{ "@ai": { "@concat": ["Answered: ", { "@json": "{{answers[0]}}" }] } }],
            },
        },
    },
    edges: [
        ["__start__", "wonder"],
        ["wonder", "__end__"],
    ],
};

const STOPS = {
    name: "stops",
    state: { messages: { reducer: "messages" } },
    nodes: { reply: { kind: "script", replies: [{ content: "After the stop." }] } },
    edges: [
        ["__start__", "reply"],
        ["reply", "__end__"],
    ],
    interrupt_before: ["reply"],
};

test.describe("other requests", () => {
    const ask = async (heddle: Heddle, chat: Chat, value: unknown) =>
        asked(heddle, chat, "asks", JSON.stringify(value));

    test("LangChain's decisions, reviews, forms, texts and JSON", async ({ serve, chat, page }) => {
        const file = writeJson(join(newFolder(), "asks.json"), ASKS);
        const heddle = await serve({ options: ["--graph", `asks=${file}`] });
        const said = (value: unknown) =>
            expect(chat.message(`Answered: ${JSON.stringify(value)}`)).toBeVisible();

        const mail = (action: string) => ({
            action_request: { action, args: { to: "ann@example.com" } },
            config: {
                allow_ignore: true,
                allow_respond: true,
                allow_edit: false,
                allow_accept: true,
            },
            description: "# Draft\n\nPlease **check** it:\n\n- the name\n- the date",
        });
        await ask(heddle, chat, mail("send_one"));
        const draft = question(page, "send_one");
        await expect(draft.getByRole("heading", { name: "Draft" })).toBeVisible();
        await expect(draft.getByRole("listitem")).toHaveText(["the name", "the date"]);
        await draft.getByRole("button", { name: "Accept" }).click();
        await said([{ type: "accept", args: null }]);

        await ask(heddle, chat, [mail("send_two")]);
        await question(page, "send_two").getByRole("button", { name: "Ignore" }).click();
        await said([{ type: "ignore", args: null }]);

        await ask(heddle, chat, {
            action_requests: [
                { name: "write_file", args: { path: "a.txt" }, description: "Writes a file" },
                { name: "run", args: { command: "ls" } },
            ],
            review_configs: [
                { action_name: "write_file", allowed_decisions: ["approve", "reject"] },
                { action_name: "run", allowed_decisions: ["approve", "edit", "reject"] },
            ],
        });
        await expect(question(page, "write_file").getByRole("button")).toHaveText([
            "Accept",
            "Reject with a reason",
            "Reject",
        ]);
        await question(page, "write_file")
            .getByRole("button", { name: "Reject with a reason" })
            .click();
        await page.getByRole("textbox", { name: "Reason" }).fill("not there");
        await question(page, "write_file")
            .getByRole("button", { name: "Reject", exact: true })
            .click();
        await question(page, "run").getByRole("button", { name: "Edit" }).click();
        await page.getByLabel("command").fill("pwd");
        await button(page, "Accept with changes").click();
        await said({
            decisions: [
                { type: "reject", message: "not there" },
                { type: "edit", edited_action: { name: "run", args: { command: "pwd" } } },
            ],
        });

        await ask(heddle, chat, {
            type: "review_results",
            phase: "phase1",
            result_count: 1,
            message: "Look at these.",
            results: [
                {
                    title: "A find",
                    summary: "It is good.",
                    source_url: "https://example.com/a",
                    relevance_score: 1,
                    metadata: {},
                },
            ],
        });
        await expect(page.getByRole("heading", { name: "A find" })).toBeVisible();
        await expectNoViolations(page);
        await button(page, "Send back").click();
        await page.getByLabel("What is missing").fill("more of it");
        await button(page, "Send back").click();
        await said({ approved: false, feedback: "more of it" });

        await ask(heddle, chat, {
            type: "mcp_input",
            server: "files",
            tool: "open",
            message: "Who are you?",
            requests: {
                "1": {
                    method: "elicitation/create",
                    params: {
                        message: "Your details",
                        requestedSchema: {
                            type: "object",
                            required: ["name"],
                            properties: {
                                name: { type: "string", title: "Name" },
                                age: { type: "integer" },
                                role: { type: "string", enum: ["boss", "clerk"] },
                            },
                        },
                    },
                },
            },
        });
        await page.getByRole("textbox", { name: "Name" }).fill("Ada");
        await page.getByLabel("role").selectOption("clerk");
        await button(page, "Send").first().click();
        await said({ action: "accept", content: { name: "Ada", role: "clerk" } });

        await ask(heddle, chat, "What is your name?");
        await expect(question(page, "What is your name?")).toBeVisible();
        const named = question(page, "What is your name?");
        await expect(named.getByRole("textbox")).toHaveCount(0); // the composer is the only box
        await expect(chat.composer).toHaveAttribute("placeholder", "Reply to the question…");
        await chat.say("Ada");
        await said("Ada");

        await ask(heddle, chat, { question: "How many?", choices: [1, 2] });
        await expect(
            question(page, "How many?").getByRole("row", { name: "choices" }),
        ).toBeVisible();
        await page.getByRole("checkbox", { name: "As JSON" }).check();
        await expect(page.getByText(/is waiting for your reply above/)).toBeVisible();
        await page.getByRole("textbox", { name: "Reply as JSON" }).fill("{");
        await button(page, "Send reply").click();
        await expect(page.getByText("Invalid JSON")).toBeVisible();
        await page.getByRole("textbox", { name: "Reply as JSON" }).fill('{"n": 2}');
        await button(page, "Send reply").click();
        await said({ n: 2 });
    });

    test("a breakpoint waits for Continue", async ({ serve, chat, page }) => {
        const file = writeJson(join(newFolder(), "stops.json"), STOPS);
        const heddle = await serve({ options: ["--graph", `stops=${file}`] });
        await asked(heddle, chat, "stops", "hello");
        await expect(page.getByText("stops is paused before reply.")).toBeVisible();
        await page.reload();
        await button(page, "Continue").click();
        await expect(chat.message("After the stop.")).toBeVisible();
        await expect(button(page, "Continue")).toBeHidden();
    });
});

test("a delegate's request is shown once, with its name", async ({
    heddle,
    chat,
    page,
    weather,
}) => {
    const clerk = await assistant(heddle, "Clerk of the weather", {
        http_tools: [weather.tool],
        approval: true,
    });
    const boss = await assistant(heddle, "Boss", { assistants: [clerk] });
    const order = JSON.stringify({ message: use("Paris") });
    await asked(heddle, chat, boss, `use Clerk_of_the_weather with ${order}`);
    await expect(question(page, "weather")).toHaveCount(1);
    await expect(question(page, "weather")).toContainText(
        "Clerk of the weather wants to use weather",
    );
    await expect(question(page, "weather")).toContainText("requested by Boss");
    await question(page, "weather").getByRole("button", { name: "Accept" }).click();
    await waitFor(() => weather.cities.length === 1, "the delegate's call");
    await expect(question(page, "weather")).toBeHidden();
    await chat.idle();
});
