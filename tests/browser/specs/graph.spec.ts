// The drawing of the agent's graph: in the page's colours, with running nodes highlighted.
import type { Page } from "@playwright/test";
import { assistant, expect, expectNoViolations, shot, test } from "../lib";

const node = (page: Page, name: string) => page.locator(`svg [data-node="${name}"]`);
const listed = (page: Page, name: string) =>
    page.getByRole("list", { name: "Nodes" }).getByRole("listitem").filter({ hasText: name });

test("running nodes are highlighted, and listed for screen readers", async ({
    heddle,
    chat,
    page,
    weather,
}) => {
    const agent = await assistant(heddle, "Drawn", { http_tools: [weather.tool] });
    await page.goto(`${heddle.url}/#/?agent=${agent}`);
    await page.getByRole("button", { name: "Graph" }).click();
    await expect(page.getByRole("img", { name: "Graph of Drawn" })).toBeVisible();
    await expect(listed(page, "tool_node")).toHaveText("tool_node");
    await expect(page.locator("svg [data-active]")).toHaveCount(0);
    await expectNoViolations(page);
    weather.hold();
    await chat.say('use weather with {"city": "Paris"}');
    await expect(node(page, "tool_node")).toHaveAttribute("data-active");
    await expect(listed(page, "tool_node")).toHaveText("tool_node running");
    await shot(page, "graph-at-work");
    weather.release();
    await expect(chat.message("The tools said: sunny in Paris")).toBeVisible();
    await chat.idle();
    await expect(page.locator("svg [data-active]")).toHaveCount(0);
});

test("an interrupted node is marked, and another agent has another drawing", async ({
    heddle,
    chat,
    page,
    weather,
}) => {
    const agent = await assistant(heddle, "Asks first", {
        http_tools: [weather.tool],
        approval: true,
    });
    await page.goto(`${heddle.url}/#/?agent=${agent}`);
    await chat.say('use weather with {"city": "Paris"}');
    await page.getByRole("button", { name: "Graph" }).click();
    await expect(node(page, "tool_node")).toHaveAttribute("data-waiting");
    await expect(listed(page, "tool_node")).toHaveText("tool_node waiting for your reply");
    await page.getByRole("button", { name: /^Agent: / }).click();
    await page.getByRole("option", { name: "demo" }).click();
    await expect(page.getByRole("img", { name: "Graph of demo" })).toBeVisible();
    await expect(node(page, "approval")).toBeVisible();
    await expect(node(page, "tool_node")).toHaveCount(0);
});

test("a drawing fits the panel and can be enlarged", async ({ heddle, chat, page }) => {
    await chat.open(heddle);
    await page.getByRole("button", { name: /^Agent: / }).click();
    await page.getByRole("option", { name: "research_agent" }).click();
    await page.getByRole("button", { name: "Graph" }).click();
    const drawing = page.getByRole("img", { name: "Graph of research_agent" });
    const paper = page.getByRole("group", { name: "Drawing" });
    const inside = async () =>
        (await drawing.boundingBox())!.width <= (await paper.boundingBox())!.width;
    await expect(drawing).toBeVisible();
    await expect.poll(inside).toBe(true);
    await page.getByRole("button", { name: "Larger" }).click();
    await page.getByRole("button", { name: "Larger" }).click();
    await expect.poll(inside).toBe(false);
    await page.getByRole("button", { name: "Fit" }).click();
    await expect.poll(inside).toBe(true);
    await shot(page, "graph-research");
});

test("a drawing contains no active content", async ({ heddle, chat, page, watch }) => {
    watch.allow(/Content Security Policy/); // inspects the text before it is sanitized
    const evil = `<svg xmlns="http://www.w3.org/2000/svg" xmlns:x="http://www.w3.org/1999/xlink" viewBox="0 0 10 10" onload="document.title='x'">
        <script>document.title = "x"</script><style>* { display: none }</style><foreignObject><b>b</b></foreignObject>
        <a x:href="javascript:alert(1)"><text>a</text></a><image href="https://example.com/a.png"/>
        <g class="node" data-node="left" onclick="alert(1)" style="fill: url(https://example.com)"><rect class="box" width="5" height="5"/></g></svg>`;
    await page.route("**/assistants/*/graph?format=svg", (route) =>
        route.fulfill({ contentType: "image/svg+xml", body: evil }),
    );
    await chat.open(heddle);
    await page.getByRole("button", { name: "Graph" }).click();
    await expect(node(page, "left")).toBeVisible();
    const html = await page.getByRole("group", { name: "Drawing" }).innerHTML();
    for (const word of [
        "script",
        "style",
        "foreignObject",
        "href",
        "onload",
        "onclick",
        "example.com",
    ])
        expect(html).not.toContain(word);
});
