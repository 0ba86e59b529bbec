// Shared conversations: with participants, and by invitation.
import type { Page } from "@playwright/test";
import {
    conversation,
    expect,
    expectNoViolations,
    FAILED_REQUEST,
    test,
    waitFor,
    type Heddle,
} from "../lib";
import { composer, overhear, paste, side, title } from "../lib/signing";

test("a viewer reads, an editor writes, and a removed participant has no access", async ({
    serve,
    page,
    browser,
    watch,
}) => {
    watch.allow(FAILED_REQUEST);
    const heddle = await serve({ auth: true });
    const [alice, bob] = [heddle.key("alice"), heddle.key("bob")];
    const thread = await conversation(heddle, ["hello"], { title: "Shared loom", token: alice });
    await page.goto(`${heddle.url}/#/t/${thread}`);
    await paste(page, alice);
    await page.getByRole("button", { name: "Conversation menu" }).click();
    await page.getByRole("menuitem", { name: "Details and sharing" }).click();
    const dialog = page.getByRole("dialog", { name: "Shared loom" });
    await expect(dialog.getByText("Not shared.")).toBeVisible();
    await dialog.getByLabel("Subject of the person").fill("bob");
    await dialog.getByRole("button", { name: "Add" }).click();
    await expect(dialog.getByLabel("Permission of bob")).toBeVisible();

    const context = await browser.newContext();
    const guest = await context.newPage();
    await guest.goto(heddle.url);
    await paste(guest, bob);
    await side(guest)
        .getByRole("link", { name: /Shared loom.*shared/ })
        .click();
    await expect(guest.getByRole("article").filter({ hasText: "You said: hello" })).toBeVisible();
    await expect(
        guest.getByText(
            "You can read this conversation. Only its owner and editors can write in it.",
        ),
    ).toBeVisible();
    await expect(composer(guest)).toBeDisabled();
    await guest.getByRole("button", { name: "Conversation menu" }).click();
    await expect(guest.getByRole("menuitem", { name: "Delete" })).toHaveCount(0);
    await expect(guest.getByRole("menuitem", { name: "Rename" })).toHaveCount(0);
    await guest.keyboard.press("Escape");

    await dialog.getByLabel("Permission of bob").selectOption("can write");
    await waitFor(async () => {
        const list = await heddle.ask<{ role: string }[]>(
            "GET",
            `/threads/${thread}/participants`,
            undefined,
            { token: alice },
        );
        return list[0]?.role === "editor";
    }, "bob to be an editor");
    await guest.reload();
    await expect(composer(guest)).toBeEnabled();
    await composer(guest).fill("from bob");
    await guest.getByRole("button", { name: "Send" }).click();
    await expect(
        guest.getByRole("article").filter({ hasText: "You said: from bob" }),
    ).toBeVisible();

    await dialog.getByRole("button", { name: "Remove bob" }).click();
    await expect(dialog.getByText("Not shared.")).toBeVisible();
    await guest.reload();
    await expect(guest.getByText("Conversation not found")).toBeVisible();
    await context.close();
});

async function invited(page: Page, heddle: Heddle, thread: string, key: string): Promise<string> {
    await page.goto(`${heddle.url}/#/t/${thread}`);
    await paste(page, key);
    await page.getByRole("button", { name: "Conversation menu" }).click();
    await page.getByRole("menuitem", { name: "Details and sharing" }).click();
    await page.getByRole("button", { name: "Create a link" }).click();
    return page.getByLabel("Invitation link").inputValue();
}

test("an invitation is a link that works once", async ({ serve, page, browser, watch }) => {
    watch.allow(FAILED_REQUEST);
    const heddle = await serve({ auth: true });
    const [alice, bob, carol] = [heddle.key("alice"), heddle.key("bob"), heddle.key("carol")];
    const thread = await conversation(heddle, ["hello"], { title: "By invitation", token: alice });
    const link = await invited(page, heddle, thread, alice);
    expect(link).toContain(`${heddle.url}/#/?invitation=`);
    const token = link.split("=")[1] ?? "";

    const context = await browser.newContext();
    const heard = overhear(context);
    const guest = await context.newPage();
    await guest.goto(link);
    await expect(title(guest)).toBeVisible();
    expect(guest.url()).not.toContain(token);
    await paste(guest, bob);
    const join = guest.getByRole("dialog", { name: "Join a conversation" });
    await expect(join).toBeVisible();
    await expectNoViolations(guest);
    await join.getByRole("button", { name: "Join" }).click();
    await expect(guest.getByRole("heading", { name: "By invitation", level: 1 })).toBeVisible();
    expect(
        heard.filter(
            (text) => text.includes(token) && !text.startsWith(`${heddle.url}/#/?invitation=`),
        ),
    ).toEqual([]);
    expect(heddle.log()).not.toContain(token);

    // It is used up: another user cannot join with it.
    await guest.getByRole("button", { name: "Sign out" }).click();
    await paste(guest, carol);
    await guest.getByRole("button", { name: "Join with an invitation" }).click();
    await join.getByLabel("Invitation link or code").fill("???");
    await join.getByRole("button", { name: "Join" }).click();
    await expect(join.getByRole("alert")).toHaveText(
        "Paste the whole invitation link or its code.",
    );
    await join.getByLabel("Invitation link or code").fill(link);
    await join.getByRole("button", { name: "Join" }).click();
    await expect(join.getByRole("alert")).toContainText("This invitation is no longer valid");
    await context.close();
});

test("an invitation is revoked", async ({ serve, page, watch }) => {
    watch.allow(FAILED_REQUEST);
    const heddle = await serve({ auth: true });
    const alice = heddle.key("alice");
    const thread = await conversation(heddle, ["hello"], { title: "Not any more", token: alice });
    const link = await invited(page, heddle, thread, alice);
    await page.getByRole("button", { name: "Revoke the invitation" }).click();
    await expect(page.getByLabel("Invitation link")).toBeHidden();
    await expect(page.getByRole("button", { name: "Revoke the invitation" })).toBeHidden();
    const token = decodeURIComponent(link.split("=")[1] ?? "");
    await heddle.ask(
        "POST",
        "/invitations/accept",
        { token },
        { status: 404, token: heddle.key("bob") },
    );
});
