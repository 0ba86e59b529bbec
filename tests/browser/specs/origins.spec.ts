// Pages of other origins and a server without users: the requests that a browser really sends.
import type { Page } from "@playwright/test";
import { expect, FAILED_REQUEST, test } from "../lib";
import { listen } from "../lib/listen";
import type { Watch } from "../lib/watch";

const CORS = /blocked by CORS policy/;

const HTML = "<title>another page</title>";

async function openPage(page: Page, watch: Watch, origin: string) {
    watch.allowOrigin(origin);
    watch.allow(FAILED_REQUEST, CORS);
    await page.goto(`${origin}/`);
}

type Sent = { status: number; type: string } | "failed";

const post = (page: Page, url: string, mode: RequestMode, type: string) =>
    page.evaluate(
        async ([url, mode, type]): Promise<Sent> => {
            try {
                const answer = await fetch(url, {
                    method: "POST",
                    mode: mode as RequestMode,
                    headers: { "Content-Type": type },
                    body: JSON.stringify({ metadata: { from: "a page" } }),
                });
                return { status: answer.status, type: answer.type };
            } catch {
                return "failed";
            }
        },
        [url, mode, type] as const,
    );

test("a page of a development server can use the server, a page of the internet cannot", async ({
    serve,
    page,
    watch,
}) => {
    const heddle = await serve();
    const threads = `${heddle.url}/threads`;
    const count = async () => {
        const answer = await fetch(`${threads}/search`, { method: "POST", body: "{}" });
        return ((await answer.json()) as unknown[]).length;
    };

    const evil = "http://evil.example";
    await page.route(`${evil}/`, (route) =>
        route.fulfill({ contentType: "text/html", body: HTML }),
    );
    await openPage(page, watch, evil);
    expect(await post(page, threads, "cors", "application/json")).toBe("failed");
    expect(await post(page, threads, "cors", "text/plain")).toBe("failed");
    // A browser may send this one without a preflight; the page cannot read the response.
    await post(page, threads, "no-cors", "text/plain");
    expect(await count()).toBe(0);

    const development = await listen((_, answer) => {
        answer.setHeader("Content-Type", "text/html").end(HTML);
    });
    try {
        await openPage(page, watch, development.url);
        expect(await post(page, threads, "cors", "text/plain")).toMatchObject({ status: 415 });
        expect(await post(page, threads, "cors", "application/json")).toMatchObject({
            status: 200,
        });
        expect(await count()).toBe(1);
    } finally {
        await development.close();
    }
});
