// Compiles src/ into dist/ (npm's "prepare"). A packed tarball already has dist/.
//
// `npm install PATH` on a checkout runs this without the development dependencies, so it installs
// them first.
import { execFileSync } from "node:child_process";
import { existsSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import { packageDir } from "./core.mjs";

function findCompiler() {
    try {
        return createRequire(join(packageDir, "package.json")).resolve("typescript/bin/tsc");
    } catch {
        return undefined;
    }
}

function installDevelopmentDependencies() {
    const env = { ...process.env, NODE_ENV: "development" };
    // The outer npm's settings for its own project do not apply to this one.
    for (const name of [
        "omit",
        "production",
        "only",
        "save",
        "local_prefix",
        "global",
        "prefix",
        "dry_run",
    ]) {
        delete env[`npm_config_${name}`];
    }
    const args = [
        "install",
        "--ignore-scripts",
        "--include=dev",
        "--no-save",
        "--no-audit",
        "--no-fund",
    ];
    const npm = process.env.npm_execpath;
    const [command, ...first] = npm ? [process.execPath, npm] : ["npm"];
    execFileSync(command, [...first, ...args], { stdio: "inherit", cwd: packageDir, env });
}

if (existsSync(join(packageDir, "src"))) {
    if (findCompiler() === undefined) installDevelopmentDependencies();
    const compiler = findCompiler();
    if (compiler === undefined) throw new Error("heddle: TypeScript could not be installed");
    execFileSync(process.execPath, [compiler, "-p", packageDir], {
        stdio: "inherit",
        cwd: packageDir,
    });
}
