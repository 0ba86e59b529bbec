// An OpenID Connect issuer: discovery, authorization code with PKCE, refresh tokens, a key set.
// Signs in as `user` without a form, unless the test sets an error.
import { createHash, createSign, generateKeyPairSync, randomUUID } from "node:crypto";
import type { IncomingMessage, ServerResponse } from "node:http";
import { listen } from "./listen";

export type Issuer = {
    url: string;
    /** The next user. */
    user: string;
    /** The lifetime of a token in seconds. */
    lifetime: number;
    /** The error of the next authorization instead of a code: "access_denied". */
    refuses: string | null;
    /** The grant types of the requests to the token endpoint, in order. */
    grants: string[];
    /**
     * A member of `auth.issuers` in the configuration; `more` are members for sign-in on the page.
     */
    config(more?: object): Record<string, unknown>;
    /** A token as the token endpoint issues it. */
    token(subject: string, claims?: object): string;
    close(): Promise<void>;
};

const AUDIENCE = "heddle";
const base64url = (value: unknown) => Buffer.from(JSON.stringify(value)).toString("base64url");

async function bodyOf(asked: IncomingMessage): Promise<URLSearchParams> {
    const pieces: Buffer[] = [];
    for await (const piece of asked) pieces.push(piece as Buffer);
    return new URLSearchParams(Buffer.concat(pieces).toString());
}

function json(answer: ServerResponse, status: number, value: unknown) {
    answer.writeHead(status, { "Content-Type": "application/json" }).end(JSON.stringify(value));
}

export async function startIssuer(): Promise<Issuer> {
    const { privateKey, publicKey } = generateKeyPairSync("rsa", { modulusLength: 2048 });
    const codes = new Map<
        string,
        { challenge: string; redirect: string; user: string; nonce: string | null }
    >();
    const refreshes = new Map<string, string>();

    function token(subject: string, claims: object = {}): string {
        const now = Math.floor(Date.now() / 1000);
        const head = base64url({ alg: "RS256", kid: "k1", typ: "JWT" });
        const body = base64url({
            iss: issuer.url, aud: AUDIENCE, sub: subject, iat: now - 1, exp: now + issuer.lifetime,
            jti: randomUUID(), ...claims,
        }); // prettier-ignore
        const signature = createSign("RSA-SHA256")
            .update(`${head}.${body}`)
            .sign(privateKey, "base64url");
        return `${head}.${body}.${signature}`;
    }

    function authorize(query: URLSearchParams, answer: ServerResponse) {
        const back = new URL(query.get("redirect_uri") ?? "http://127.0.0.1:9/");
        const isRight =
            query.get("response_type") === "code" &&
            query.get("code_challenge_method") === "S256" &&
            Boolean(query.get("code_challenge") && query.get("state") && query.get("client_id"));
        if (!isRight) return json(answer, 400, { error: "invalid_request", asked: [...query] });
        back.searchParams.set("state", query.get("state") ?? "");
        if (issuer.refuses) {
            back.searchParams.set("error", issuer.refuses);
        } else {
            const code = randomUUID();
            const challenge = query.get("code_challenge") ?? "";
            const redirect = query.get("redirect_uri") ?? "";
            codes.set(code, { challenge, redirect, user: issuer.user, nonce: query.get("nonce") });
            back.searchParams.set("code", code);
        }
        answer.writeHead(302, { Location: back.href }).end();
    }

    function give(answer: ServerResponse, user: string, nonce: string | null) {
        const refresh = randomUUID();
        refreshes.set(refresh, user);
        const id = token(user, nonce ? { nonce } : {});
        json(answer, 200, {
            access_token: token(user), id_token: id, refresh_token: refresh, token_type: "Bearer", expires_in: issuer.lifetime,
        }); // prettier-ignore
    }

    function exchange(form: URLSearchParams, answer: ServerResponse) {
        issuer.grants.push(form.get("grant_type") ?? "");
        if (form.get("grant_type") === "refresh_token") {
            const user = refreshes.get(form.get("refresh_token") ?? "");
            refreshes.delete(form.get("refresh_token") ?? "");
            return user ? give(answer, user, null) : json(answer, 400, { error: "invalid_grant" });
        }
        const code = codes.get(form.get("code") ?? "");
        codes.delete(form.get("code") ?? "");
        const proof = createHash("sha256")
            .update(form.get("code_verifier") ?? "")
            .digest("base64url");
        if (!code || code.challenge !== proof || code.redirect !== form.get("redirect_uri")) {
            return json(answer, 400, { error: "invalid_grant" });
        }
        give(answer, code.user, code.nonce);
    }

    const { url, close } = await listen((asked, answer) => {
        const { pathname, searchParams } = new URL(asked.url ?? "/", "http://x");
        if (pathname === "/.well-known/openid-configuration") {
            json(answer, 200, {
                issuer: issuer.url,
                authorization_endpoint: `${issuer.url}/authorize`,
                token_endpoint: `${issuer.url}/token`,
                jwks_uri: `${issuer.url}/jwks`,
                response_types_supported: ["code"],
                code_challenge_methods_supported: ["S256"],
            });
        } else if (pathname === "/jwks") {
            json(answer, 200, {
                keys: [
                    { ...publicKey.export({ format: "jwk" }), kid: "k1", alg: "RS256", use: "sig" },
                ],
            });
        } else if (pathname === "/authorize") authorize(searchParams, answer);
        else if (pathname === "/token") void bodyOf(asked).then((form) => exchange(form, answer));
        else json(answer, 404, { error: "not_found" });
    });
    const issuer: Issuer = {
        url,
        user: "alice",
        lifetime: 3600,
        refuses: null,
        grants: [],
        token,
        config: (more = {}) => ({
            alias: "main",
            issuer: issuer.url,
            audience: AUDIENCE,
            algorithms: ["RS256"],
            jwks_url: `${issuer.url}/jwks`,
            ...more,
        }),
        close,
    };
    return issuer;
}
