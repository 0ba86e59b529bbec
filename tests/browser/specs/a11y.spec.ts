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

test.describe("with fingers", () => {
    test.use({ viewport: SIZES.narrow, hasTouch: true, isMobile: true });

    test("what is pressed is 44 pixels high and wide", async ({ page, watch }) => {
        const small: Record<string, string[]> = {};
        for (const name of FINGERED) {
            await page.goto("about:blank"); // what was opened last is closed
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

/** What can be pressed and is too small for a finger; words that are links stand in a text. */
function findSmall(): string[] {
    const pressed =
        "button, a[href], input, select, textarea, summary, [role=option], [role=menuitem]";
    const isSmall = (element: Element) => {
        const { width, height, bottom } = (
            element.closest("label") ?? element
        ).getBoundingClientRect();
        return Math.min(width, height) < 43.9 && bottom > 0; // above the window: for the keyboard
    };
    return [...document.querySelectorAll(pressed)]
        .filter((element) => element.checkVisibility({ visibilityProperty: true }))
        .filter((element) => !element.closest("p, td, [inert]") && isSmall(element))
        .map((element) => element.outerHTML.slice(0, 120));
}

/** Nothing sticks out: a page that scrolls sideways cannot be read on a phone, or at 400 %. */
async function expectNoSideways(page: Parameters<typeof expectNoViolations>[0], width: number) {
    expect(await page.evaluate(() => document.documentElement.scrollWidth)).toBeLessThanOrEqual(
        width,
    );
}
