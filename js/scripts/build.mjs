// Compiles the addon: js/native and the C core into build/heddle.node.
//
// Needs a C compiler (CC, or cc), pkg-config and the development files of the libraries below;
// downloads nothing. Compiles only sources changed since the last build. CFLAGS and LDFLAGS are
// added; HEDDLE_POSTGRESQL=0 omits the PostgreSQL driver even if libpq is installed.
import { execFile, execFileSync } from "node:child_process";
import { createRequire } from "node:module";
import {
    existsSync,
    mkdirSync,
    readdirSync,
    readFileSync,
    renameSync,
    statSync,
    writeFileSync,
} from "node:fs";
import { basename, join } from "node:path";
import { promisify } from "node:util";
import { findCore, packageDir } from "./core.mjs";

const run = promisify(execFile);
const JOBS = 2;
const LIBRARIES = ["sqlite3", "libzstd", "libxxhash", "yyjson", "libcrypto"];
const PACKAGES = {
    sqlite3: "libsqlite3-dev",
    libzstd: "libzstd-dev",
    libxxhash: "libxxhash-dev",
    yyjson: "libyyjson-dev",
    libcrypto: "libssl-dev",
};

const compiler = process.env.CC || "cc";
const output = join(packageDir, "build");
const words = (text) => (text ?? "").split(/\s+/).filter(Boolean);

function pkgConfig(...args) {
    try {
        return words(
            execFileSync("pkg-config", args, {
                stdio: ["ignore", "pipe", "ignore"],
                encoding: "utf8",
            }),
        );
    } catch (error) {
        if (error.code === "ENOENT")
            throw new Error("pkg-config is required to build heddle (Debian: pkg-config)");
        return undefined;
    }
}

function libraries() {
    const missing = LIBRARIES.filter((name) => pkgConfig("--exists", name) === undefined);
    if (missing.length > 0) {
        const packages = missing.map((name) => PACKAGES[name]).join(" ");
        throw new Error(
            `libraries are missing: ${missing.join(", ")} (Debian and Ubuntu: ${packages})`,
        );
    }
    const hasPostgres =
        process.env.HEDDLE_POSTGRESQL !== "0" && pkgConfig("--exists", "libpq") !== undefined;
    const names = hasPostgres ? [...LIBRARIES, "libpq"] : LIBRARIES;
    return {
        hasPostgres,
        cflags: pkgConfig("--cflags", ...names),
        libs: pkgConfig("--libs", ...names),
    };
}

function sources(core, hasPostgres) {
    const folders = [
        join(packageDir, "native"),
        join(core, "src", "base"),
        join(core, "src", "store"),
    ];
    return folders.flatMap((folder) =>
        readdirSync(folder, { recursive: true })
            .filter((name) => name.endsWith(".c"))
            .filter((name) => hasPostgres || !/^postgres[\\/]/.test(name))
            .sort()
            .map((name) => join(folder, name)),
    );
}

function flags(core, { hasPostgres, cflags }) {
    const headers = createRequire(import.meta.url)("node-api-headers").include_dir;
    return [
        "-std=c11",
        "-O2",
        "-g",
        "-DNDEBUG",
        "-D_GNU_SOURCE",
        "-fPIC",
        "-fvisibility=hidden",
        "-pthread",
        "-Wall",
        "-Wextra",
        ...(hasPostgres ? ["-DHD_WITH_POSTGRESQL"] : []),
        `-I${join(core, "include")}`,
        `-I${join(core, "src")}`,
        `-I${headers}`,
        "-include",
        join(core, "src", "base", "banned.h"),
        ...cflags,
        ...words(process.env.CFLAGS),
    ];
}

const modified = (path) => (existsSync(path) ? statSync(path).mtimeMs : -1);

/** Reports whether the object is newer than the source and every header in its dependency file. */
function isFresh(object) {
    const dependencies = `${object.slice(0, -2)}.d`;
    if (!existsSync(object) || !existsSync(dependencies)) return false;
    const made = modified(object);
    const text = readFileSync(dependencies, "utf8").replaceAll("\\\n", " ");
    // A space in a path is written as "\ ".
    const paths = text.slice(text.indexOf(":") + 1).match(/(?:\\ |\S)+/g) ?? [];
    return paths.every((path) => {
        const time = modified(path.replaceAll("\\ ", " "));
        return time >= 0 && time <= made;
    });
}

async function compile(source, object, args) {
    await run(compiler, [
        ...args,
        "-MMD",
        "-MF",
        `${object.slice(0, -2)}.d`,
        "-c",
        source,
        "-o",
        object,
    ]);
}

async function inParallel(tasks) {
    const queue = [...tasks];
    const workers = Array.from({ length: JOBS }, async () => {
        for (let task = queue.shift(); task; task = queue.shift()) await task();
    });
    await Promise.all(workers);
}

function link(objects, target, libs) {
    const shared =
        process.platform === "darwin" ? ["-bundle", "-undefined", "dynamic_lookup"] : ["-shared"];
    const args = [
        ...shared,
        "-pthread",
        "-o",
        `${target}.new`,
        ...objects,
        ...words(process.env.LDFLAGS),
        ...libs,
    ];
    execFileSync(compiler, args, { stdio: "inherit" });
    // A process that has loaded the old file keeps it.
    renameSync(`${target}.new`, target);
}

/** Objects of another compiler or with other flags are not reused. */
function isSameCommand(args) {
    const stamp = join(output, "command.txt");
    const text = [compiler, process.arch, ...args].join("\n");
    const isSame = existsSync(stamp) && readFileSync(stamp, "utf8") === text;
    return { isSame, remember: () => writeFileSync(stamp, text) };
}

async function main() {
    const core = findCore();
    const found = libraries();
    const args = flags(core, found);
    mkdirSync(output, { recursive: true });
    const { isSame, remember } = isSameCommand([...args, ...found.libs]);
    const list = sources(core, found.hasPostgres);
    const objectOf = (source) =>
        join(output, `${basename(join(source, ".."))}-${basename(source, ".c")}.o`);
    const stale = list.filter((source) => !isSame || !isFresh(objectOf(source)));
    await inParallel(stale.map((source) => () => compile(source, objectOf(source), args)));

    const target = join(output, "heddle.node");
    const objects = list.map(objectOf);
    const isLinked =
        isSame &&
        stale.length === 0 &&
        objects.every((object) => modified(object) <= modified(target));
    if (!isLinked) link(objects, target, found.libs);
    remember();
    if (!found.hasPostgres) console.log("heddle: libpq was not found; built without PostgreSQL");
}

main().catch((error) => {
    console.error(`heddle: cannot build the addon: ${error.stderr || error.message}`);
    process.exitCode = 1;
});
