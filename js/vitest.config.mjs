import { defineConfig } from "vitest/config";

export default defineConfig({
    test: {
        // The official conformance package uses describe() and it() as globals.
        globals: true,
        globalSetup: ["./tests/lib/build.mjs"],
        include: ["tests/**/*.test.ts"],
        // Two cores in CI, and each file may start its own stores.
        fileParallelism: false,
        // Only against hangs: a slow machine must not fail a test.
        testTimeout: 120_000,
        hookTimeout: 120_000,
        reporters: ["default", "./tests/lib/totals.mjs"],
    },
});
