/**
 * Module resolution: compiles TypeScript files as they are loaded, and shares the project's copy of
 * LangChain with this package, wherever it is installed.
 */
import { createRequire, register } from "node:module";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { forImport } from "./modules.js";

export async function prepareLoading(folder: string): Promise<void> {
    if (!sharesLangChain(folder)) {
        register("./hooks.js", import.meta.url, {
            data: { folder: pathToFileURL(join(folder, "package.json")).href },
        });
    }
    await registerTypeScript(folder);
}

function found(from: string | URL, specifier: string): string | undefined {
    try {
        return createRequire(from).resolve(specifier);
    } catch {
        return undefined;
    }
}

/** Reports whether an import here and one in the project give the same classes. */
function sharesLangChain(folder: string): boolean {
    return ["@langchain/core/messages", "@langchain/langgraph-checkpoint"].every((name) => {
        const own = found(import.meta.url, name);
        return own !== undefined && own === (found(join(folder, "package.json"), name) ?? own);
    });
}

/** tsx, the project's own if installed; without it Node may still strip types by itself. */
async function registerTypeScript(folder: string): Promise<void> {
    for (const from of [join(folder, "package.json"), import.meta.url]) {
        const path = found(from, "tsx/esm/api");
        const common = found(from, "tsx/cjs/api");
        if (path === undefined || common === undefined) continue;
        const esm = (await import(pathToFileURL(forImport(path)).href)) as { register(): void };
        const cjs = (await import(pathToFileURL(forImport(common)).href)) as { register(): void };
        cjs.register();
        esm.register();
        return;
    }
}
