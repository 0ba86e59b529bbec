// Screenshots for the documentation: HEDDLE_SCREENSHOTS=docs/page writes them there.
import { expect, shot, test } from "../lib";
import { startScenes, type Scenes } from "../lib/scenes";
import { states, type StateName } from "../lib/states";

const WIDE = { width: 1280, height: 800 };
const NARROW = { width: 390, height: 780 };

const pictures: [StateName, "light" | "dark", typeof WIDE][] = [
    ["welcome", "light", NARROW],
    ["conversation", "light", WIDE],
    ["branches", "dark", WIDE],
    ["approval", "light", NARROW],
    ["team", "dark", NARROW],
    ["team", "dark", WIDE],
    ["failure", "light", NARROW],
    ["graph", "light", WIDE],
    ["state", "dark", WIDE],
    ["editor", "light", WIDE],
    ["list", "dark", NARROW],
];

let scenes: Scenes;
test.beforeAll(async () => {
    scenes = await startScenes();
});
test.afterAll(() => scenes?.close());

for (const [name, colorScheme, viewport] of pictures) {
    test.describe(() => {
        test.use({ colorScheme, viewport });
        test(`${name}, ${colorScheme}, ${viewport === WIDE ? "wide" : "narrow"}`, async ({
            page,
            watch,
        }) => {
            await states[name]({ page, scenes, watch });
            // Nothing overflows sideways.
            expect(await page.evaluate(() => document.documentElement.scrollWidth)).toBe(
                viewport.width,
            );
            await page.evaluate(async () => {
                if (document.activeElement instanceof HTMLElement) document.activeElement.blur();
                await document.fonts.ready;
            });
            await shot(page, `${name}-${colorScheme}-${viewport === WIDE ? "wide" : "narrow"}`);
        });
    });
}
