// The cost of the page: bytes on the wire, time to the first paint, requests of the second visit.
import type { CDPSession, Page } from "@playwright/test";
import { expect, test, type Heddle } from "../lib";

const WEIGHT = 350 * 1024;
const FIRST_PAINT_MS = 300;
const PATIENCE_MS = 150_000;
const POLICY =
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; font-src 'self'; " +
    "connect-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'";

type Answer = {
    path: string;
    status: number;
    bytes: number;
    isCached: boolean;
    headers: Record<string, string>;
};

/** Every response, as the browser's network stack counts it. */
async function listen(
    page: Page,
): Promise<{ answers: () => Answer[]; forget: () => void; cdp: CDPSession }> {
    const cdp = await page.context().newCDPSession(page);
    const found = new Map<string, Answer>();
    const served = new Set<string>(); // from the cache, which is reported before the response
    await cdp.send("Network.enable");
    cdp.on("Network.responseReceived", ({ requestId, response }) => {
        const { pathname, protocol } = new URL(response.url);
        if (!protocol.startsWith("http")) return;
        const headers = Object.fromEntries(
            Object.entries(response.headers).map(([name, value]) => [name.toLowerCase(), value]),
        );
        const isCached =
            served.has(requestId) || Boolean(response.fromDiskCache || response.fromPrefetchCache);
        found.set(requestId, {
            path: pathname,
            status: response.status,
            bytes: 0,
            isCached,
            headers,
        });
    });
    cdp.on("Network.requestServedFromCache", ({ requestId }) => {
        served.add(requestId);
        const answer = found.get(requestId);
        if (answer) answer.isCached = true;
    });
    cdp.on("Network.loadingFinished", ({ requestId, encodedDataLength }) => {
        const answer = found.get(requestId);
        if (answer) answer.bytes = encodedDataLength;
    });
    return { answers: () => [...found.values()], forget: () => found.clear(), cdp };
}

async function open(page: Page, heddle: Heddle) {
    await page.goto(heddle.url, { waitUntil: "load" });
    await expect(page.getByLabel("Message", { exact: true })).toBeVisible();
}

async function paintedAfter(page: Page): Promise<number> {
    const entry = await page.waitForFunction(
        () =>
            performance
                .getEntriesByType("paint")
                .find(({ name }) => name === "first-contentful-paint")?.startTime,
    );
    return (await entry.jsonValue()) ?? Infinity;
}

test("the page weighs less than 350 KB, all of it with every part opened", async ({
    serve,
    page,
}) => {
    const heddle = await serve({ release: true });
    const { answers } = await listen(page);
    await open(page, heddle);
    const first = () => answers().reduce((sum, { bytes }) => sum + bytes, 0);
    await expect.poll(first).toBeGreaterThan(10_000);
    expect(first()).toBeLessThan(WEIGHT);

    // Parts that load on demand count as well.
    for (const name of ["Branches", "State", "Graph"]) {
        await page
            .getByRole("navigation", { name: "Panels" })
            .getByRole("button", { name })
            .click();
        await expect(page.getByRole("heading", { name })).toBeVisible();
    }
    await page.goto(`${heddle.url}/#/agents`);
    await expect(page.getByRole("heading", { name: "Agents", exact: true })).toBeVisible();
    await page.waitForLoadState("networkidle");
    const own = answers().filter(
        ({ path }) => path === "/" || path.startsWith("/assets/") || path === "/icon.svg",
    );
    expect(own.length).toBeGreaterThan(2);
    expect(
        own.filter(({ headers, bytes }) => bytes > 2000 && headers["content-encoding"] !== "gzip"),
    ).toEqual([]);
    expect(own.reduce((sum, { bytes }) => sum + bytes, 0)).toBeLessThan(WEIGHT);
});

test("the first paint comes within 300 ms", async ({ serve, page }) => {
    const heddle = await serve({ release: true });
    const { cdp } = await listen(page);
    await cdp.send("Network.setCacheDisabled", { cacheDisabled: true });
    // The best of several attempts: other load on the machine does not count.
    let best = Infinity;
    const until = Date.now() + PATIENCE_MS;
    while (best >= FIRST_PAINT_MS && Date.now() < until) {
        await open(page, heddle);
        best = Math.min(best, await paintedAfter(page));
        await page.goto("about:blank");
    }
    console.log(`first contentful paint: ${best.toFixed(0)} ms`);
    expect(best).toBeLessThan(FIRST_PAINT_MS);
});

test("the second visit requests only the index, which is not modified", async ({ serve, page }) => {
    const heddle = await serve({ release: true });
    const { answers, forget } = await listen(page);
    await open(page, heddle);
    const assets = answers().filter(({ path }) => path.startsWith("/assets/"));
    expect(assets.length).toBeGreaterThan(1);
    for (const { headers } of assets)
        expect(headers["cache-control"]).toMatch(/max-age=31536000.*immutable/);
    expect(answers().find(({ path }) => path === "/")?.headers["cache-control"]).toBe("no-cache");

    await page.goto("about:blank");
    forget();
    await open(page, heddle);
    const again = answers();
    const fetched = again.filter(({ path, isCached }) => path.startsWith("/assets/") && !isCached);
    expect(fetched).toEqual([]);

    const index = await page.request.get(heddle.url);
    const tag = index.headers().etag ?? "";
    const same = await page.request.get(heddle.url, { headers: { "If-None-Match": tag } });
    expect([tag !== "", same.status()]).toEqual([true, 304]);
});

test("the page is served with its policy and contacts no other host", async ({
    serve,
    page,
    watch,
}) => {
    const heddle = await serve({ release: true });
    const { answers } = await listen(page);
    const asked = new Set<string>();
    page.on("request", (request) => asked.add(new URL(request.url()).origin));
    await open(page, heddle);
    const index = answers().find(({ path }) => path === "/")?.headers ?? {};
    expect(index["content-security-policy"]).toBe(POLICY);
    expect(index["x-content-type-options"]).toBe("nosniff");
    expect(index["referrer-policy"]).toBe("no-referrer");
    expect(index["cross-origin-opener-policy"]).toBe("same-origin");
    expect([...asked].filter((origin) => origin !== "null")).toEqual([new URL(heddle.url).origin]);

    // The policy holds: foreign content does not run and is not fetched.
    watch.allow(/Content Security Policy/);
    watch.allowOrigin("http://127.0.0.1:9");
    const outcome = await page.evaluate(async () => {
        const script = document.createElement("script");
        script.textContent = "window.intruder = true";
        document.head.append(script);
        const fetched = await fetch("http://127.0.0.1:9/").then(
            () => "answered",
            () => "refused",
        );
        return [Reflect.get(window, "intruder") ?? null, fetched];
    });
    expect(outcome).toEqual([null, "refused"]);
});
