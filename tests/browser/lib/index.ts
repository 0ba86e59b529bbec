// The imports of specs:
//
//   import { expect, test } from "../lib";
//   test("the page does something", async ({ heddle, chat }) => { … });
import { test as base, expect } from "@playwright/test";
import { startHeddle, type Heddle, type ServeOptions } from "./heddle";
import { startIssuer, type Issuer } from "./issuer";
import { startMock, type Mock, type Script } from "./mock";
import { startPacedModel, type PacedModel } from "./paced";
import { chatOf, type Chat } from "./chat";
import { startWeather, type Weather } from "./tools";
import { watchContext, type Watch } from "./watch";

type Serve = (options?: ServeOptions) => Promise<Heddle>;

type Fixtures = {
    /** serve(options): a server for this test alone, with its own model. */
    serve: Serve;
    /** mock(script): an additional model. */
    mock: (script?: Script) => Promise<Mock>;
    /** pace(pieces, held): a model that counts but holds the last pieces back until finish(). */
    pace: (pieces: string[], held: number) => Promise<PacedModel>;
    weather: Weather;
    /** An identity provider: serve({ config: { auth: { issuers: [issuer.config()] } } }). */
    issuer: Issuer;
    /** Forbidden behaviour of the page; checked after every test. */
    watch: Watch;
    /** The page: elements that users see and press. */
    chat: Chat;
};
type Shared = {
    /** One server for all tests of a worker: they share its threads and assistants. */
    heddle: Heddle;
};

export const test = base.extend<Fixtures, Shared>({
    heddle: [
        async ({}, use) => {
            const heddle = await startHeddle();
            await use(heddle);
            await heddle.remove();
        },
        { scope: "worker", timeout: 180_000 },
    ],
    baseURL: async ({ heddle }, use) => use(heddle.url),
    serve: async ({ context }, use) => {
        const made: Heddle[] = [];
        await use(async (options) => {
            const heddle = await startHeddle(options);
            made.push(heddle);
            return heddle;
        });
        // Close the pages first: an open page would report its stopped server.
        for (const page of context.pages()) await page.goto("about:blank");
        for (const heddle of made.reverse()) await heddle.remove();
    },
    mock: async ({}, use) => {
        const made: Mock[] = [];
        await use(async (script) => {
            const model = await startMock(script);
            made.push(model);
            return model;
        });
        for (const model of made) await model.remove();
    },
    pace: async ({}, use) => {
        const made: PacedModel[] = [];
        await use(async (pieces, held) => {
            const model = await startPacedModel(pieces, held);
            made.push(model);
            return model;
        });
        for (const model of made) await model.close();
    },
    weather: async ({}, use) => {
        const weather = await startWeather();
        await use(weather);
        weather.release();
        await weather.close();
    },
    issuer: async ({}, use) => {
        const issuer = await startIssuer();
        await use(issuer);
        await issuer.close();
    },
    watch: [
        async ({ context }, use, info) => {
            const watch = watchContext(context);
            await use(watch);
            if (info.status === info.expectedStatus)
                expect(watch.complaints(), "the page's manners").toEqual([]);
        },
        { auto: true },
    ],
    chat: async ({ page }, use) => use(chatOf(page)),
});

export { expect };
export type { Chat, Heddle, Issuer, Mock, Script, Serve, ServeOptions, Watch, Weather };
export { expectNoViolations } from "./axe";
export { waitFor } from "./programs";
export * from "./seed";
export { chatOf } from "./chat";
export { shot } from "./shot";
export { FAILED_REQUEST } from "./watch";
