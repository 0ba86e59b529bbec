// Answers of numbered words, and an observer in the page that records every state of them: no word
// may be missing or duplicated, whatever happens to the connection, the page or the server.
import { expect, type Page } from "@playwright/test";

/** `w1 w2 … wN` */
export function words(count: number): string {
    return pieces(count).join("");
}

/** The same as a list of pieces, one per word. */
export function pieces(count: number, between = " "): string[] {
    return Array.from({ length: count }, (_, at) => `${at > 0 ? between : ""}w${at + 1}`);
}

/** `parts`: the number of partial lengths seen before the answer was complete. */
type Seen = { faults: string[]; most: number; parts: number };

declare global {
    interface Window {
        seenWords: () => Seen;
    }
}

/** Records the messages after every change of the page, from the first one, also after a reload. */
export async function watchWords(page: Page): Promise<void> {
    await page.addInitScript(() => {
        if (!location.protocol.startsWith("http")) return;
        const key = "test:words";
        const read = (): Seen =>
            JSON.parse(sessionStorage.getItem(key) ?? '{"faults":[],"most":0,"parts":0}') as Seen;
        const seen = read();
        let begun = "";
        const note = (fault: string) => {
            if (!seen.faults.includes(fault)) seen.faults.push(fault);
        };
        const look = () => {
            const articles = [...document.querySelectorAll("article")];
            const answers = articles.filter((one) => one.getAttribute("aria-label") !== "You");
            for (const answer of answers) {
                const found = answer.textContent?.match(/w\d+/g) ?? [];
                const wrong = found.findIndex((word, at) => word !== `w${at + 1}`);
                if (wrong >= 0)
                    note(
                        `after ${found.slice(0, wrong).join(" ").slice(-40)} came ${found[wrong]}`,
                    );
                if (found.length > seen.most) seen.parts++;
                seen.most = Math.max(seen.most, found.length);
            }
            const own = articles.length - answers.length;
            if (begun !== "" && begun === location.hash && own === 0)
                note("what was said was gone for a moment");
            begun = own > 0 ? location.hash : begun === location.hash ? begun : "";
            sessionStorage.setItem(key, JSON.stringify(seen));
        };
        new MutationObserver(look).observe(document, {
            subtree: true,
            childList: true,
            characterData: true,
        });
        window.seenWords = () => seen;
    });
}

/** Waits until at least so many words are shown. */
export async function expectWords(page: Page, count: number): Promise<void> {
    await expect(page.getByRole("article").last()).toContainText(new RegExp(`\\bw${count}\\b`));
}

/** The whole answer is visible once, and no earlier state was wrong. */
export async function expectWhole(page: Page, count: number): Promise<void> {
    await expect(page.getByRole("article").filter({ hasText: words(count) })).toHaveCount(1);
    await expect(page.getByRole("button", { name: "Stop" })).toBeHidden();
    await expect(page.getByRole("article").filter({ hasText: words(count) })).toHaveCount(1);
    const { faults, most, parts } = await page.evaluate(() => window.seenWords());
    expect({ faults, most }).toEqual({ faults: [], most: count });
    expect(parts, "looks at an answer that grew").toBeGreaterThan(1);
}
