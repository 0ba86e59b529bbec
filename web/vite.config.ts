import { fileURLToPath } from "node:url";
import { defineConfig } from "vite";

// `npm run dev` serves the page from source and proxies other requests to a Heddle server.
const server = process.env.HEDDLE_URL ?? "http://localhost:2024";
const forwarded = [
    "/threads",
    "/assistants",
    "/runs",
    "/mentions",
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
        cssCodeSplit: false, // a part that is loaded a second time would lack its style
        assetsInlineLimit: 0, // the content security policy forbids data: scripts and styles
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
