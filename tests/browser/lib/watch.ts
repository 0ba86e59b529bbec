// Checks in every test: the page contacts only its own server, logs no error to the console, throws
// nothing, and obeys its content security policy.
import type { BrowserContext, ConsoleMessage, Page } from "@playwright/test";

export type Watch = {
    /** Console errors that a test provokes: an unreachable server, a response with status 500. */
    allow(...patterns: RegExp[]): void;
    /** Another allowed origin: an issuer, for sign-in. */
    allowOrigin(origin: string): void;
    /** All violations so far. */
    complaints(): string[];
};

/** Chromium's own log of a failed request, for tests that provoke one. */
export const FAILED_REQUEST = /Failed to load resource|net::ERR_/;

/** The pages under test, one per server. */
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
