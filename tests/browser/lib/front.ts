// Serves a folder built by `vite build` with the headers of the embedded page, and proxies all
// other requests, including streams, to a server.
import { existsSync, readFileSync, statSync } from "node:fs";
import { request, type IncomingMessage, type ServerResponse } from "node:http";
import { createHash } from "node:crypto";
import { extname, join, normalize } from "node:path";
import { gzipSync } from "node:zlib";
import { listen, type Listening } from "./listen";

const TYPES: Record<string, string> = {
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".svg": "image/svg+xml",
    ".json": "application/json",
    ".woff2": "font/woff2",
    ".png": "image/png",
};
const POLICY =
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; font-src 'self'; " +
    "connect-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'";
const SETTINGS = { version: "0.0.0", needs_sign_in: false, sign_in: [] };

function fileOf(folder: string, path: string): string | null {
    const name = path === "/" ? "/index.html" : normalize(path);
    if (name !== "/index.html" && name !== "/icon.svg" && !name.startsWith("/assets/")) return null;
    const file = join(folder, name);
    return existsSync(file) && statSync(file).isFile() ? file : null;
}

function give(file: string, asked: IncomingMessage, answer: ServerResponse) {
    const content = readFileSync(file);
    const tag = `"${createHash("sha256").update(content).digest("base64url").slice(0, 22)}"`;
    const isAsset = file.includes("/assets/");
    const headers = {
        "Cache-Control": isAsset ? "public, max-age=31536000, immutable" : "no-cache",
        ETag: tag,
        "Content-Security-Policy": POLICY,
        "X-Content-Type-Options": "nosniff",
        "Referrer-Policy": "no-referrer",
        "Cross-Origin-Opener-Policy": "same-origin",
        Vary: "Accept-Encoding",
    };
    if (asked.headers["if-none-match"] === tag) {
        answer.writeHead(304, headers).end();
        return;
    }
    const body = gzipSync(content, { level: 9 });
    answer.writeHead(200, {
        ...headers,
        "Content-Type": TYPES[extname(file)] ?? "application/octet-stream",
        "Content-Encoding": "gzip",
        "Content-Length": body.length,
    });
    answer.end(asked.method === "HEAD" ? undefined : body);
}

/** An unreachable server breaks the connection, as it would without this proxy. */
function handOn(port: number, asked: IncomingMessage, answer: ServerResponse, settings: boolean) {
    const further = request(
        { host: "127.0.0.1", port, method: asked.method, path: asked.url, headers: asked.headers },
        (got) => {
            if (settings && got.statusCode === 404) {
                got.resume();
                answer
                    .writeHead(200, { "Content-Type": "application/json" })
                    .end(JSON.stringify(SETTINGS));
                return;
            }
            answer.writeHead(got.statusCode ?? 502, got.rawHeaders);
            answer.flushHeaders();
            got.on("data", (piece) => answer.write(piece));
            got.on("end", () => answer.end());
            got.on("error", () => answer.destroy());
            got.on("aborted", () => answer.destroy());
        },
    );
    further.setNoDelay(true);
    further.on("error", () => answer.destroy());
    answer.on("close", () => further.destroy());
    asked.pipe(further);
}

/** `folder` at /, everything else from the server at `port`, which may start later. */
export function startFront(folder: string, port: number): Promise<Listening> {
    return listen((asked, answer) => {
        const path = new URL(asked.url ?? "/", "http://x").pathname;
        const file =
            asked.method === "GET" || asked.method === "HEAD" ? fileOf(folder, path) : null;
        if (file) give(file, asked, answer);
        else handOn(port, asked, answer, path === "/page/settings");
    });
}
