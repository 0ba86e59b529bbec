// Uses Debian's Chromium; `run` sets the paths.
import { defineConfig } from "@playwright/test";

const out = process.env.HEDDLE_BROWSER_OUT ?? "/tmp/heddle-browser";

export default defineConfig({
    testDir: "specs",
    outputDir: `${out}/results`,
    workers: 2,
    retries: 0,
    forbidOnly: true,
    fullyParallel: false,
    timeout: 240_000,
    expect: { timeout: Number(process.env.HEDDLE_BROWSER_EXPECT_MS ?? 60_000) },
    reporter: [["./lib/reporter.ts"]],
    use: {
        actionTimeout: 60_000,
        navigationTimeout: 60_000,
        viewport: { width: 1280, height: 800 },
        colorScheme: "light",
        locale: "en-GB",
        timezoneId: "UTC",
        reducedMotion: "reduce",
        trace: process.env.HEDDLE_BROWSER_TRACE ? "retain-on-failure" : "off",
        screenshot: "only-on-failure",
        launchOptions: {
            executablePath: process.env.HEDDLE_CHROMIUM ?? "/usr/bin/chromium",
            env: { ...process.env, FONTCONFIG_FILE: `${__dirname}/lib/fonts.conf` } as Record<
                string,
                string
            >,
            args: [
                "--no-sandbox",
                "--disable-gpu",
                "--disable-quic",
                "--no-first-run",
                "--disable-background-networking",
                "--disable-component-update",
                "--disable-sync",
                "--disable-dev-shm-usage",
            ],
        },
    },
});
