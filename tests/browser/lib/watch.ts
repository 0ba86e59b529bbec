// What every test insists on: the page asks nobody but its own server, writes no error to the
// console, throws nothing, and stays within its content security policy.
import type { BrowserContext, ConsoleMessage, Page } from "@playwright/test";

export type Watch = {
    /** Errors of the console that a test provokes: a server that is gone, an answer with 500. */
    allow(...patterns: RegExp[]): void;
    /** Another origin that may be asked: an issuer, to sign in. */
    allowOrigin(origin: string): void;
    /** Everything that was wrong so far. */
    complaints(): string[];
};

/** What Chromium writes by itself when a request fails: for tests in which some must. */
export const FAILED_REQUEST = /Failed to load resource|net::ERR_/;

/** The pages under test: each server says where its own is. */
const pages = new Set<string>();

export function addPage(url: string) {
    pages.add(new URL(url).origin);
}

export function watchContext(context: BrowserContext): Watch {
    const allowed: RegExp[] = [];
    const origins = new Set<string>();
    const seen: string[] = [];

    const note = (text: string) => {
        if (!seen.includes(text)) seen.push(text);
    };
    const onConsole = (message: ConsoleMessage) => {
        if (message.type() !== "error" && !/Content Security Policy/.test(message.text())) return;
        note(`console: ${message.text()} (${message.location().url})`);
    };
    context.on("console", onConsole);
    context.on("weberror", (error) =>
        note(`thrown: ${error.error().stack ?? error.error().message}`),
    );
    context.on("request", (request) => {
        const { protocol, origin } = new URL(request.url());
        if (
            ["data:", "blob:", "about:"].includes(protocol) ||
            pages.has(origin) ||
            origins.has(origin)
        )
            return;
        note(`another host was asked: ${request.url()}`);
    });
    context.on("page", (page: Page) => {
        page.on("crash", () => note("the page crashed"));
    });

    return {
        allow: (...patterns) => void allowed.push(...patterns),
        allowOrigin: (origin) => void origins.add(origin),
        complaints: () => seen.filter((text) => !allowed.some((pattern) => pattern.test(text))),
    };
}
