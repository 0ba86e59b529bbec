// Compiles src/ into dist/ when this is a checkout with TypeScript installed.
import { execFileSync } from "node:child_process";
import { existsSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import { packageDir } from "./core.mjs";

function compiler() {
  try {
    return createRequire(import.meta.url).resolve("typescript/bin/tsc");
  } catch {
    return undefined;
  }
}

const tsc = compiler();
if (tsc !== undefined) {
  execFileSync(process.execPath, [tsc, "-p", packageDir], { stdio: "inherit", cwd: packageDir });
} else if (!existsSync(join(packageDir, "dist", "index.js"))) {
  console.error("heddle: dist/ is missing: run `npm install` in the package's own directory first");
  process.exitCode = 1;
}
