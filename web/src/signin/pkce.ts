// The parts of the PKCE flow (RFC 7636) without network access. Pure.
import type { SignInMethod } from "@/api/heddle";

/** The state needed after the redirect. It stays in this tab. */
export interface Begun {
    state: string;
    verifier: string;
    name: string;
    redirectUri: string;
    hash: string;
    remember: boolean;
}

export interface Returned {
    begun: Begun | null;
    code: string | null;
    /** The issuer's error. */
    error: string | null;
    issuer: string | null;
}

export function encode64(bytes: Uint8Array): string {
    return btoa(String.fromCharCode(...bytes))
        .replaceAll("+", "-")
        .replaceAll("/", "_")
        .replaceAll("=", "");
}

export async function challengeOf(verifier: string): Promise<string> {
    return encode64(
        new Uint8Array(await crypto.subtle.digest("SHA-256", new TextEncoder().encode(verifier))),
    );
}

export function addressOf(
    method: SignInMethod,
    redirectUri: string,
    state: string,
    challenge: string,
): string {
    if (!method.authorization_endpoint)
        throw new Error(`${method.name} can't be reached. Try again in a moment.`);
    const url = new URL(method.authorization_endpoint);
    const params = {
        response_type: "code",
        client_id: method.client_id,
        redirect_uri: redirectUri,
        scope: method.scope,
        state,
        code_challenge: challenge,
        code_challenge_method: "S256",
    };
    for (const [name, value] of Object.entries(params)) url.searchParams.set(name, value);
    return url.href;
}

/** Reads the redirect parameters of a URL; null: none. Pure. */
export function readReturn(search: string, begun: Begun | null): Returned | null {
    const params = new URLSearchParams(search);
    const code = params.get("code");
    const error = params.get("error");
    if (!params.has("state") || (code === null && error === null)) return null;
    const issuer = params.get("iss");
    const isOurs = begun !== null && begun.state === params.get("state");
    if (!isOurs)
        return {
            begun: null,
            code: null,
            error: "This sign-in did not start in this tab.",
            issuer,
        };
    return {
        begun,
        code,
        error: error === null ? null : params.get("error_description") || error,
        issuer,
    };
}
