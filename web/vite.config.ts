import { fileURLToPath } from "node:url";
import { defineConfig } from "vite";

// `npm run dev` serves the page from source and asks a Heddle server for everything else.
const server = process.env.HEDDLE_URL ?? "http://localhost:2024";
const forwarded = [
    "/threads",
    "/assistants",
    "/runs",
    "/store",
    "/info",
    "/ok",
    "/page",
    "/invitations",
];

export default defineConfig({
    base: "./",
    resolve: { alias: { "@": fileURLToPath(new URL("./src", import.meta.url)) } },
    css: { modules: { localsConvention: "camelCaseOnly" } },
    build: {
        target: "es2022",
        cssCodeSplit: false, // a part that is asked for a second time would come without its style
        assetsInlineLimit: 0, // a data: script or style would be against the policy
        modulePreload: { polyfill: false },
        chunkSizeWarningLimit: 800,
        rollupOptions: {
            onwarn: (warning, warn) => {
                const known = ["INVALID_ANNOTATION", "MODULE_LEVEL_DIRECTIVE"]; // of dependencies
                if (!known.includes(warning.code ?? "")) warn(warning);
            },
        },
    },
    server: { proxy: Object.fromEntries(forwarded.map((path) => [path, server])) },
});
