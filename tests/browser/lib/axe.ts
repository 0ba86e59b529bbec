// WCAG 2.1 AA, as far as axe can check it, in both colour schemes.
import { readFileSync } from "node:fs";
import { expect, type Page } from "@playwright/test";

const ALL = { type: "tag", values: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "best-practice"] };
const COLOURS = { type: "rule", values: ["color-contrast", "link-in-text-block"] };
const SOURCE = readFileSync(require.resolve("axe-core/axe.min.js"), "utf8");

type Found = { id: string; help: string; nodes: { html: string; failureSummary?: string }[] };
type Axe = { run(root: unknown, options: unknown): Promise<{ violations: Found[] }> };

async function violations(page: Page, runOnly: typeof ALL): Promise<string[]> {
    const found = await page.evaluate(async (only) => {
        const { axe } = window as unknown as { axe: Axe };
        const { violations } = await axe.run(document, {
            runOnly: only,
            resultTypes: ["violations"],
        });
        return violations;
    }, runOnly);
    return found.flatMap(({ id, help, nodes }) =>
        nodes.map(
            ({ html, failureSummary }) =>
                `${id}: ${help}\n    ${html}\n    ${failureSummary ?? ""}`,
        ),
    );
}

/** Waits until colour transitions have ended. */
async function settle(page: Page) {
    await page.evaluate(async () => {
        const ending = document
            .getAnimations()
            .filter((one) => one.effect?.getComputedTiming().iterations !== Infinity);
        await Promise.all(ending.map((one) => one.finished.catch(() => undefined)));
        await new Promise((resolve) => requestAnimationFrame(() => requestAnimationFrame(resolve)));
    });
}

/** All rules in the current scheme, and the colour rules in the other scheme. */
export async function expectNoViolations(page: Page) {
    const html = page.locator("html");
    await page.evaluate(SOURCE);
    for (const [colorScheme, rules] of [
        ["light", ALL],
        ["dark", COLOURS],
    ] as const) {
        await page.emulateMedia({ colorScheme });
        await expect(html).toHaveAttribute("data-theme", colorScheme);
        await settle(page);
        expect(await violations(page, rules), `axe, ${colorScheme}`).toEqual([]);
    }
    await page.emulateMedia({ colorScheme: "light" });
}
