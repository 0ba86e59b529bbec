// Signing in: with a pasted token or key, and at an issuer; secrets do not leak.
import type { Page } from "@playwright/test";
import { conversation, expect, expectNoViolations, FAILED_REQUEST, test, waitFor } from "../lib";
import type { Issuer } from "../lib/issuer";
import { composer, overhear, paste, side, title } from "../lib/signing";

const again = (page: Page) => page.getByRole("dialog", { name: "Sign in again" });

async function stored(page: Page): Promise<{ local: string; session: string }> {
    return page.evaluate(() => ({
        local: JSON.stringify({ ...window.localStorage }),
        session: JSON.stringify({ ...window.sessionStorage }),
    }));
}

function withIssuer(issuer: Issuer, more: object = {}) {
    const auth = { issuers: [issuer.config()], api_keys: true };
    return {
        config: {
            auth,
            page: { sign_in: [{ issuer: "main", name: "Hall", client_id: "page" }] },
            ...more,
        },
    };
}

async function secretsOf(page: Page): Promise<string[]> {
    const { token, refreshToken } = JSON.parse(
        (await page.evaluate(() => window.sessionStorage.getItem("heddle:session"))) ?? "{}",
    ) as { token?: string; refreshToken?: string };
    return [token, refreshToken].filter((one) => typeof one === "string");
}

test("a pasted key is checked, used, and lasts as long as the tab", async ({
    serve,
    page,
    context,
    watch,
}) => {
    watch.allow(FAILED_REQUEST);
    const heddle = await serve({ auth: true });
    const key = heddle.key("alice");
    const heard = overhear(context);
    const thread = await conversation(heddle, ["hello"], { title: "Alice's own", token: key });
    await page.goto(`${heddle.url}/#/t/${thread}`);
    await expect(title(page)).toBeVisible();
    await expect(page.getByLabel("Token or API key")).toBeFocused();
    await expect(page.getByLabel("Token or API key")).toHaveAttribute("type", "password");
    await expect(page.getByLabel(/Keep me signed in/)).not.toBeChecked();
    await expectNoViolations(page);

    await paste(page, "not a key");
    await expect(page.getByRole("alert")).toHaveText(
        "Paste a token or an API key, without spaces.",
    );
    await paste(page, "hdk_wrong");
    await expect(page.getByRole("alert")).toHaveText(
        "The server does not accept this token or key.",
    );
    expect((await stored(page)).session).not.toContain("hdk_wrong");

    await paste(page, key);
    await expect(page.getByRole("heading", { name: "Alice's own", level: 1 })).toBeVisible();
    await expect(side(page).getByRole("link", { name: /Alice's own/ })).toBeVisible();
    expect((await stored(page)).local).not.toContain(key);
    await page.reload();
    await expect(side(page).getByRole("link", { name: /Alice's own/ })).toBeVisible();

    // Another tab of the same browser has no session.
    const other = await context.newPage();
    await other.goto(heddle.url);
    await expect(title(other)).toBeVisible();
    expect(heard.filter((text) => text.includes(key))).toEqual([]);
});

test("a remembered session lasts until sign-out", async ({ serve, page, context, watch }) => {
    watch.allow(FAILED_REQUEST);
    const heddle = await serve({ auth: true });
    const key = heddle.key("alice");
    const thread = await conversation(heddle, ["hello"], { title: "Alice's own", token: key });
    await page.goto(`${heddle.url}/#/t/${thread}`);
    await page.getByLabel(/Keep me signed in/).check();
    await paste(page, key);
    await expect(side(page).getByRole("link", { name: /Alice's own/ })).toBeVisible();

    const other = await context.newPage();
    await other.goto(heddle.url);
    await expect(side(other).getByRole("link", { name: /Alice's own/ })).toBeVisible();
    await composer(other).fill("a secret thought");
    await other.getByRole("radio", { name: "Dark" }).check();
    await other.getByRole("button", { name: "Sign out" }).click();
    await expect(title(other)).toBeVisible();
    const left = await stored(other);
    expect(left.local).toBe('{"heddle:theme":"dark"}');
    expect(left.session).toBe("{}");
    expect(other.url()).not.toContain(thread);
    await other.reload();
    await expect(title(other)).toBeVisible();
});

test("the next user sees nothing of the previous one", async ({ serve, page, watch }) => {
    watch.allow(FAILED_REQUEST);
    const heddle = await serve({ auth: true });
    const [alice, bob] = [heddle.key("alice"), heddle.key("bob")];
    const thread = await conversation(heddle, ["hello"], { title: "Alice's own", token: alice });
    await page.goto(`${heddle.url}/#/t/${thread}`);
    await paste(page, alice);
    await expect(side(page).getByRole("link", { name: /Alice's own/ })).toBeVisible();
    await page.getByRole("button", { name: "Sign out" }).click();
    await paste(page, bob);
    await expect(side(page).getByText("Your conversations will appear here.")).toBeVisible();
    await expect(page.getByText("Alice's own")).toHaveCount(0);
    await page.goto(`${heddle.url}/#/t/${thread}`);
    await expect(page.getByText("Conversation not found")).toBeVisible();
    await expect(page.getByText("Alice's own")).toHaveCount(0);
});

test("sign-in at an issuer uses a code with PKCE and returns to the same page", async ({
    serve,
    page,
    context,
    issuer,
    watch,
}) => {
    watch.allowOrigin(issuer.url);
    const heddle = await serve(withIssuer(issuer));
    const thread = await conversation(heddle, ["hello"], {
        title: "Alice's own",
        token: issuer.token("alice"),
    });
    const heard = overhear(context);
    await page.goto(`${heddle.url}/#/t/${thread}`);
    await expect(title(page)).toBeVisible();
    await expectNoViolations(page);
    await page.getByRole("button", { name: "Continue with Hall" }).click();
    await expect(page.getByRole("heading", { name: "Alice's own", level: 1 })).toBeVisible();
    await expect(side(page).getByText("Signed in as alice")).toBeVisible();
    expect(page.url()).toBe(`${heddle.url}/#/t/${thread}`);
    expect(issuer.grants).toEqual(["authorization_code"]);

    const secrets = await secretsOf(page);
    expect(secrets.length).toBe(2);
    const { local, session } = await stored(page);
    for (const secret of secrets) {
        expect(heard.filter((text) => text.includes(secret))).toEqual([]);
        expect(local).not.toContain(secret);
        expect(heddle.log()).not.toContain(secret);
    }
    expect(session).not.toContain("verifier");
    // The code was in the URL briefly, as it must be; it is in no entry of the history.
    await page.goBack();
    expect(page.url()).not.toContain("code=");
});

test("an issuer's refusal is shown", async ({ serve, page, issuer, watch }) => {
    watch.allowOrigin(issuer.url);
    watch.allow(FAILED_REQUEST);
    const heddle = await serve(withIssuer(issuer));
    issuer.refuses = "access_denied";
    await page.goto(heddle.url);
    await page.getByRole("button", { name: "Continue with Hall" }).click();
    await expect(page.getByRole("alert")).toHaveText("Sign-in failed. access_denied");
    expect(page.url()).not.toContain("error=");
    issuer.refuses = null;
    await page.getByRole("button", { name: "Continue with Hall" }).click();
    await expect(side(page).getByText("Signed in as alice")).toBeVisible();
});

test("an issuer that is unreachable at first can be used later", async ({
    serve,
    page,
    issuer,
    watch,
}) => {
    watch.allowOrigin(issuer.url);
    const heddle = await serve(withIssuer(issuer));
    let isAway = true;
    await page.route("**/page/settings", async (route) => {
        const answer = await route.fetch();
        const settings = (await answer.json()) as {
            sign_in: { name: string; authorization_endpoint: string | null }[];
        };
        if (isAway) for (const way of settings.sign_in) way.authorization_endpoint = null;
        else settings.sign_in.push({ ...settings.sign_in[0]!, name: "Another hall" });
        await route.fulfill({ response: answer, json: settings });
    });
    await page.goto(heddle.url);
    await expect(title(page)).toBeVisible();
    isAway = false;
    await page.getByRole("button", { name: "Continue with Hall" }).click();
    await expect(page.getByRole("alert")).toHaveText(
        "Hall can't be reached. Try again in a moment.",
    );
    // The page has reloaded the settings when it shows the new ones.
    await expect(page.getByRole("button", { name: "Continue with Another hall" })).toBeVisible();
    await page.getByRole("button", { name: "Continue with Hall" }).click();
    await expect(side(page).getByText("Signed in as alice")).toBeVisible();
});

test("a code that this tab did not request is not used", async ({ serve, page, issuer, watch }) => {
    watch.allow(FAILED_REQUEST);
    const heddle = await serve(withIssuer(issuer));
    await page.goto(`${heddle.url}/?code=stolen&state=made-up#/`);
    await expect(page.getByRole("alert")).toHaveText(
        "Sign-in failed. This sign-in did not start in this tab.",
    );
    expect(page.url()).not.toContain("stolen");
    expect(issuer.grants).toEqual([]);
});

test("a token is renewed before it expires", async ({ serve, page, issuer, watch }) => {
    watch.allowOrigin(issuer.url);
    const heddle = await serve(withIssuer(issuer));
    await page.clock.install(); // avoids waiting for an hour
    await page.goto(heddle.url);
    await page.getByRole("button", { name: "Continue with Hall" }).click();
    await expect(side(page).getByText("Signed in as alice")).toBeVisible();
    const [first] = await secretsOf(page);
    await composer(page).fill("still here");
    for (const renewals of [1, 2]) {
        const before = await secretsOf(page);
        await page.clock.fastForward((issuer.lifetime - 30) * 1000);
        await waitFor(async () => (await secretsOf(page))[1] !== before[1], "another token");
        expect(issuer.grants.filter((grant) => grant === "refresh_token")).toHaveLength(renewals);
    }
    expect((await secretsOf(page))[0]).not.toBe(first);
    await expect(composer(page)).toHaveValue("still here");
    await expect(again(page)).toHaveCount(0);
});

test("signing in again after a token expired loses nothing", async ({
    serve,
    page,
    issuer,
    watch,
}) => {
    watch.allow(FAILED_REQUEST);
    const heddle = await serve(withIssuer(issuer));
    const thread = await conversation(heddle, ["hello"], {
        title: "Alice's own",
        token: issuer.token("alice"),
    });
    const old = issuer.token("alice");
    await page.goto(`${heddle.url}/#/t/${thread}`);
    await paste(page, old);
    await expect(page.getByRole("heading", { name: "Alice's own", level: 1 })).toBeVisible();
    await composer(page).fill("half a sentence");
    await page.route(/\/(threads|assistants|runs)\b/, (route) =>
        route.request().headers().authorization === `Bearer ${old}`
            ? route.fulfill({ status: 401, json: { detail: "Unauthorized" } })
            : route.continue(),
    );
    // The list reloads when the page becomes visible again.
    await page.evaluate(() => document.dispatchEvent(new Event("visibilitychange")));
    await expect(again(page)).toBeVisible();
    await expectNoViolations(page);
    await page.keyboard.press("Escape");
    await expect(again(page)).toBeVisible();
    await paste(page, issuer.token("alice", { jti: "another" }));
    await expect(again(page)).toBeHidden();
    await expect(composer(page)).toHaveValue("half a sentence");
    expect(page.url()).toContain(thread);
    await page.getByRole("button", { name: "Send" }).click();
    await expect(
        page.getByRole("article").filter({ hasText: "You said: half a sentence" }),
    ).toBeVisible();
});
