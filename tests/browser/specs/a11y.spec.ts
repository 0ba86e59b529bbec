// axe on every state of the page: light and dark, wide and narrow.
import { expect, expectNoViolations, FAILED_REQUEST, test } from "../lib";
import { startScenes, type Scenes } from "../lib/scenes";
import { states, type State, type StateName } from "../lib/states";

const SIZES = { wide: { width: 1280, height: 800 }, narrow: { width: 390, height: 780 } };

// Both workers take their part, each with a server of its own.
test.describe.configure({ mode: "parallel" });

let scenes: Scenes;
test.beforeAll(async () => {
    scenes = await startScenes();
});
test.afterAll(() => scenes?.close());

for (const [size, viewport] of Object.entries(SIZES)) {
    test.describe(size, () => {
        test.use({ viewport });
        for (const name of Object.keys(states) as StateName[]) {
            test(name, async ({ page, watch }) => {
                const state: State = states[name];
                const leave = await state({ page, scenes, watch });
                try {
                    await expectNoViolations(page);
                    await expectNoSideways(page, viewport.width);
                } finally {
                    await leave?.();
                }
            });
        }

        test("signing in", async ({ serve, page, watch }) => {
            watch.allow(FAILED_REQUEST);
            const heddle = await serve({ auth: true });
            await page.goto(heddle.url);
            await expect(page.getByRole("textbox", { name: /token/i })).toBeVisible();
            await expectNoViolations(page);
            await expectNoSideways(page, viewport.width);
        });
    });
}

/** Nothing sticks out: a page that scrolls sideways cannot be read on a phone, or at 400 %. */
async function expectNoSideways(page: Parameters<typeof expectNoViolations>[0], width: number) {
    expect(await page.evaluate(() => document.documentElement.scrollWidth)).toBeLessThanOrEqual(
        width,
    );
}
