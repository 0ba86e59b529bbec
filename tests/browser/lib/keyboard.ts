// The page without a mouse: Tab, Enter, Escape, arrow keys, and a visible focus.
import { expect, type Locator, type Page } from "@playwright/test";

const MOST_TABS = 120;

async function isFocused(target: Locator): Promise<boolean> {
    return target.evaluateAll((found) =>
        found.some((element) => element === document.activeElement),
    );
}

/** The focused element has an outline or a shadow, and is in the viewport. */
export async function expectVisibleFocus(page: Page) {
    const seen = await page.evaluate(() => {
        const element = document.activeElement;
        if (!element || element === document.body) return "nothing has the focus";
        if (!element.matches(":focus-visible"))
            return `no visible focus: ${element.outerHTML.slice(0, 200)}`;
        // The mark may be on the element, or on the field around it.
        const near = [element, element.parentElement, element.parentElement?.parentElement];
        for (const at of near) {
            if (!at) continue;
            const { outlineStyle, outlineWidth, boxShadow } = getComputedStyle(at);
            if ((outlineStyle !== "none" && outlineWidth !== "0px") || boxShadow !== "none")
                return "";
        }
        return `the focus has no mark: ${element.outerHTML.slice(0, 200)}`;
    });
    expect(seen).toBe("");
}

/** Presses Tab (or Shift+Tab) until `target` has the focus. */
export async function tabTo(page: Page, target: Locator, key: "Tab" | "Shift+Tab" = "Tab") {
    await expect(target.first()).toBeVisible();
    for (let i = 0; i < MOST_TABS; i++) {
        if (await isFocused(target)) {
            await expectVisibleFocus(page);
            return;
        }
        await page.keyboard.press(key);
    }
    throw new Error(`no ${key} leads to ${String(target)}`);
}

/** Tabs to `target` and presses Enter. */
export async function press(page: Page, target: Locator, key: "Tab" | "Shift+Tab" = "Tab") {
    await tabTo(page, target, key);
    await page.keyboard.press("Enter");
}
