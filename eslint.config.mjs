// The rules for TypeScript and JavaScript: `make lint`. scripts/lint keeps the packages beside the
// builds, so they are loaded from there.
import { createRequire } from "node:module";
import { join } from "node:path";

const build = process.env.HEDDLE_BUILD ?? join(import.meta.dirname, "build");
const load = createRequire(join(build, "lint-node", "package.json"));
const js = load("@eslint/js");
const tseslint = load("typescript-eslint");

export default tseslint.config(
    { ignores: ["build*/", "**/node_modules/", "**/dist/", "js/core/"] },
    js.configs.recommended,
    tseslint.configs.recommended,
    {
        linterOptions: { reportUnusedDisableDirectives: "error" },
        rules: {
            // The compiler and Node know the globals.
            "no-undef": "off",
            "@typescript-eslint/no-unused-vars": [
                "error",
                { argsIgnorePattern: "^_", varsIgnorePattern: "^_", ignoreRestSiblings: true },
            ],
            // Playwright and Vitest read the fixtures of a function from its pattern.
            "no-empty-pattern": ["error", { allowObjectPatternsAsParameters: true }],
        },
    },
    {
        files: ["**/tests/**"],
        rules: { "@typescript-eslint/no-explicit-any": "off" },
    },
);
