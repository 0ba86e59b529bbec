// Locates the C core: beside this package in the repository, inside it in a packed tarball. `node
// scripts/core.mjs copy|remove` creates and removes the packed copy.
import { cpSync, existsSync, readdirSync, rmSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

export const packageDir = dirname(dirname(fileURLToPath(import.meta.url)));
const repository = dirname(packageDir);
const packed = join(packageDir, "core");
const folders = ["include", join("src", "base"), join("src", "store")];

/** The directory that holds include/ and src/. */
export function findCore() {
    for (const root of [repository, packed]) {
        if (
            existsSync(join(root, "include", "heddle.h")) &&
            existsSync(join(root, "src", "store"))
        ) {
            return root;
        }
    }
    throw new Error("the C core of Heddle is missing from this package");
}

function copy() {
    rmSync(packed, { recursive: true, force: true });
    for (const folder of folders) {
        const to = join(packed, folder);
        for (const name of readdirSync(join(repository, folder), { recursive: true })) {
            if (/\.[ch]$/.test(name)) cpSync(join(repository, folder, name), join(to, name));
        }
    }
    cpSync(join(repository, "LICENSE"), join(packed, "LICENSE"));
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
    if (process.argv[2] === "copy") copy();
    else if (process.argv[2] === "remove") rmSync(packed, { recursive: true, force: true });
    else throw new Error("usage: core.mjs copy|remove");
}
