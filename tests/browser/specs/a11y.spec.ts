// axe on every state of the page: light and dark, wide and narrow.
import { expect, expectNoViolations, FAILED_REQUEST, test } from "../lib";
import { startScenes, type Scenes } from "../lib/scenes";
import { states, type State, type StateName } from "../lib/states";

const SIZES = { wide: { width: 1280, height: 800 }, narrow: { width: 390, height: 780 } };

// Both workers run a share of the states, each with its own server.
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

test.describe("with touch input", () => {
    test.use({ viewport: SIZES.narrow, hasTouch: true, isMobile: true });

    test("touch targets are 44 pixels high and wide", async ({ page, watch }) => {
        const small: Record<string, string[]> = {};
        for (const name of FINGERED) {
            await page.goto("about:blank"); // closes the last opened element
            await (states[name] as State)({ page, scenes, watch });
            const found = await page.evaluate(findSmall);
            if (found.length > 0) small[name] = found;
        }
        expect(small).toEqual({});
    });
});

const FINGERED: StateName[] = [
    "welcome",
    "conversation",
    "branches",
    "approval",
    "state",
    "graph",
    "agents",
    "editor",
    "list",
    "details",
    "picker",
    "editing",
];

/** Touch targets that are too small; links within a text are exempt. */
function findSmall(): string[] {
    const pressed =
        "button, a[href], input, select, textarea, summary, [role=option], [role=menuitem]";
    const isSmall = (element: Element) => {
        const { width, height, bottom } = (
            element.closest("label") ?? element
        ).getBoundingClientRect();
        // outside of the window: for the keyboard
        return Math.min(width, height) < 43.9 && bottom > 0;
    };
    return [...document.querySelectorAll(pressed)]
        .filter((element) => element.checkVisibility({ visibilityProperty: true }))
        .filter((element) => !element.closest("p, td, [inert]") && isSmall(element))
        .map((element) => element.outerHTML.slice(0, 120));
}

/** Nothing overflows: a page that scrolls sideways is unreadable on a phone, or at 400 %. */
async function expectNoSideways(page: Parameters<typeof expectNoViolations>[0], width: number) {
    expect(await page.evaluate(() => document.documentElement.scrollWidth)).toBeLessThanOrEqual(
        width,
    );
}
