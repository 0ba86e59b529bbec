// Builds the addon and dist/ from the current sources: some tests start programs that use them.
import { execFileSync } from "node:child_process";
import { fileURLToPath } from "node:url";

export default function setup() {
    for (const script of ["build.mjs", "types.mjs"]) {
        const path = fileURLToPath(new URL(`../../scripts/${script}`, import.meta.url));
        execFileSync(process.execPath, [path], { stdio: "inherit" });
    }
}
