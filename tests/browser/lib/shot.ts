// Screenshots: into docs/page when HEDDLE_SCREENSHOTS names that folder, else beside the results.
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import type { Page } from "@playwright/test";

export function shotFolder(): string {
    const { HEDDLE_SCREENSHOTS, HEDDLE_BROWSER_OUT = "/tmp/heddle-browser" } = process.env;
    return HEDDLE_SCREENSHOTS || join(HEDDLE_BROWSER_OUT, "shots");
}

/** Saves the window as NAME.png. */
export async function shot(page: Page, name: string): Promise<string> {
    const folder = shotFolder();
    mkdirSync(folder, { recursive: true });
    const path = join(folder, `${name}.png`);
    await page.screenshot({ path, animations: "disabled", caret: "hide", scale: "css" });
    return path;
}
