/** Loads files and packages of the project. */
import { existsSync, readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join, resolve } from "node:path";
import { pathToFileURL } from "node:url";
import type { Fields } from "./frame.js";

/** `./src/agent.ts:graph`: a file and its export; `default` without a name. */
export function splitPath(spec: string): { file: string; name: string } {
    const at = spec.lastIndexOf(":");
    const hasName = at > 1 && !/[\\/]/.test(spec.slice(at));
    return hasName
        ? { file: spec.slice(0, at), name: spec.slice(at + 1) || "default" }
        : { file: spec, name: "default" };
}

/** The value of a path in the project's configuration. */
export async function loadExport(folder: string, spec: string): Promise<unknown> {
    const { file, name } = splitPath(spec);
    const path = resolve(folder, file);
    if (!existsSync(path)) throw new Error(`no such file: ${file}`);
    const module = (await import(pathToFileURL(path).href)) as Fields;
    const value = module[name] ?? (module.default as Fields | undefined)?.[name];
    if (value === undefined || value === null) {
        const names = namesOf(module);
        throw new Error(
            `${file} has no export "${name}"; it has ${names.length > 0 ? names.join(", ") : "none"}`,
        );
    }
    return value;
}

/** The exports of a CommonJS module are members of its default export. */
function namesOf(module: Fields): string[] {
    const inner =
        typeof module.default === "object" && module.default !== null
            ? Object.keys(module.default)
            : [];
    const names = new Set([...Object.keys(module), ...inner]);
    for (const hidden of ["module.exports", "__esModule", ...(inner.length > 0 ? ["default"] : [])])
        names.delete(hidden);
    return [...names];
}

/** Imports a package as a file in the folder would; undefined when it is not installed. */
export async function importFrom(folder: string, specifier: string): Promise<Fields | undefined> {
    let path: string;
    try {
        path = createRequire(join(folder, "package.json")).resolve(specifier);
    } catch {
        return undefined;
    }
    return (await import(pathToFileURL(forImport(path)).href)) as Fields;
}

/** Packages have one copy of their code for require() and one for import. */
export function forImport(path: string): string {
    if (!path.endsWith(".cjs")) return path;
    const others = [".mjs", ".js"].map((end) => path.slice(0, -4) + end);
    return others.find((other) => existsSync(other)) ?? path;
}

/** The require() exports of a package, if a CommonJS project has loaded it. */
export function loadedCommonJs(name: string): Fields | undefined {
    const { cache } = createRequire(import.meta.url);
    const folder = `/node_modules/${name}/dist/index.cjs`;
    const path = Object.keys(cache).find((key) => key.endsWith(folder));
    return path === undefined ? undefined : (cache[path]?.exports as Fields | undefined);
}

/** The project's version of a package. */
export function packageVersion(folder: string, name: string): string | undefined {
    try {
        let path = dirname(createRequire(join(folder, "package.json")).resolve(name));
        for (; path !== dirname(path); path = dirname(path)) {
            const file = join(path, "package.json");
            if (!existsSync(file)) continue;
            const found = JSON.parse(readFileSync(file, "utf8")) as {
                name?: string;
                version?: string;
            };
            if (found.name === name) return found.version;
        }
    } catch {
        // It is not installed.
    }
    return undefined;
}
